//! Class names: converts the JVM's form to the form used in Java source.

/// `byte[]` for `[B`, `java.lang.String[][]` for `[[Ljava/lang/String;`, and `java.util.Map$Entry` for
/// `java/util/Map$Entry`.
pub fn java_name(internal: &str) -> String {
    spelled(internal).replace('/', ".")
}

/// A class as Java writes it: `byte[]` for `[B`, `a.B[]` for `[La.B;`.
pub fn spelled(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let word = match element {
        _ if dimensions == 0 => element,
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        "Z" => "boolean",
        of => of.strip_prefix('L').and_then(|of| of.strip_suffix(';')).unwrap_or(of),
    };
    // No array class has more dimensions.
    word.to_owned() + &"[]".repeat(dimensions.min(255))
}

/// Whether a class (in the JVM's or Java's notation) is part of the JDK, or is an array of such objects or of
/// primitives.
pub fn is_of_jdk(class: &str) -> bool {
    let element = class.trim_start_matches('[');
    let is_array = element.len() < class.len();
    match element.strip_prefix('L').filter(|_| is_array) {
        Some(of) => is_of_jdk(of),
        None => is_array || ["java.", "javax.", "jdk.", "sun.", "com.sun."].iter().any(|of| class.starts_with(of)),
    }
}

/// Part of the names of the JDK's classes for lambda expressions.
const LAMBDA: &str = "$$Lambda";

/// A class name without the number and address of a hidden class, which differ between processes:
/// `Orders$$Lambda$14.0x00007f31` and `Orders$$Lambda+0x00007f31` both become `Orders$$Lambda`.
pub fn plain_class(name: &str) -> &str {
    let lambda = name.find(LAMBDA).map(|at| at + LAMBDA.len());
    let end = lambda.or_else(|| name.find("+0x")).or_else(|| name.find(".0x"));
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_java() {
        let names =
            ["java/lang/String", "java.lang.String", "[[J", "[B", "[Ljava/util/HashMap$Node;", "[", "L", "byte[]"];
        let expect = [
            "java.lang.String",
            "java.lang.String",
            "long[][]",
            "byte[]",
            "java.util.HashMap$Node[]",
            "[]",
            "L",
            "byte[]",
        ];
        assert_eq!(names.map(java_name), expect);
    }

    #[test]
    fn jdk_classes_and_their_arrays_are_recognized() {
        assert!(["java.lang.String", "sun.nio.X", "[B", "[[J", "[Ljava.lang.Object;"].into_iter().all(is_of_jdk));
        assert!(!["javassist.X", "com.sunny.X", "[Lcom.shop.Order;", "Load", "B"].into_iter().any(is_of_jdk));
    }

    #[test]
    fn lambda_classes_are_merged() {
        let names = ["A$$Lambda$14+0x000000080", "A$$Lambda.0x7f", "A$$Lambda/0x1", "A$B", "B+0x0001", "a.B$MH.0x7"];
        assert_eq!(names.map(plain_class), ["A$$Lambda", "A$$Lambda", "A$$Lambda", "A$B", "B", "a.B$MH"]);
    }
}
