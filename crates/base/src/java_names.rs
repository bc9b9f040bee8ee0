//! Class names: from the JVM's form to that of Java source.

/// `byte[]` for `[B`, `java.lang.String[][]` for `[[Ljava/lang/String;`, and `java.util.Map$Entry` for
/// `java/util/Map$Entry`.
pub fn java_name(internal: &str) -> String {
    let element = internal.trim_start_matches('[');
    let dimensions = internal.len() - element.len();
    let name = match element {
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
    // No class has more dimensions.
    name.replace('/', ".") + &"[]".repeat(dimensions.min(255))
}

/// In the names of classes that the JDK makes for lambda expressions.
const LAMBDA: &str = "$$Lambda";

/// The name of a class without the number and the address of a hidden one, which differ in each process: of
/// `Orders$$Lambda$14.0x00007f31` and `Orders$$Lambda+0x00007f31` it is `Orders$$Lambda`.
pub fn plain_class(name: &str) -> &str {
    let lambda = name.find(LAMBDA).map(|at| at + LAMBDA.len());
    let end = lambda.or_else(|| name.find("+0x")).or_else(|| name.find(".0x"));
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_java() {
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
    fn classes_of_lambdas_are_one() {
        let names = ["A$$Lambda$14+0x000000080", "A$$Lambda.0x7f", "A$$Lambda/0x1", "A$B", "B+0x0001", "a.B$MH.0x7"];
        assert_eq!(names.map(plain_class), ["A$$Lambda", "A$$Lambda", "A$$Lambda", "A$B", "B", "a.B$MH"]);
    }
}
