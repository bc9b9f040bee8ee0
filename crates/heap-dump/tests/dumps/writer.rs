//! Writes heap dumps of generated objects as HotSpot does. Class names are written as in class files.

/// The type of a field: a reference, or the tag of a primitive type.
pub(crate) const REFERENCE: u8 = 2;
pub(crate) const BYTE: u8 = 8;
pub(crate) const INT: u8 = 10;

pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// The part of the heap since the last segment.
    heap: Vec<u8>,
    id_bytes: usize,
    names: Vec<String>,
    serials: u32,
}

impl Writer {
    /// Version `1.0.1` or `1.0.2`.
    pub(crate) fn new(version: &str, id_bytes: usize) -> Self {
        let mut bytes = format!("JAVA PROFILE {version}\0").into_bytes();
        bytes.extend((id_bytes as u32).to_be_bytes());
        bytes.extend([0; 8]);
        Self { bytes, heap: Vec::new(), id_bytes, names: Vec::new(), serials: 0 }
    }

    fn id(&self, id: u64) -> Vec<u8> {
        id.to_be_bytes()[8 - self.id_bytes..].to_vec()
    }

    pub(crate) fn record(&mut self, tag: u8, body: &[u8]) {
        self.bytes.push(tag);
        self.bytes.extend([0; 4]);
        self.bytes.extend((body.len() as u32).to_be_bytes());
        self.bytes.extend(body);
    }

    /// The identifier of a name, which is written if it is new.
    pub(crate) fn name(&mut self, name: &str) -> u64 {
        if let Some(at) = self.names.iter().position(|known| known == name) {
            return at as u64 + 1;
        }
        self.names.push(name.to_owned());
        let id = self.names.len() as u64;
        let body = [self.id(id), name.as_bytes().to_vec()].concat();
        self.record(0x01, &body);
        id
    }

    pub(crate) fn class(
        &mut self,
        id: u64,
        name: &str,
        parent: u64,
        loader: u64,
        statics: &[(&str, u64)],
        fields: &[(&str, u8)],
    ) -> u32 {
        let name = self.name(name);
        self.serials += 1;
        let serial = self.serials;
        let loaded = [serial.to_be_bytes().to_vec(), self.id(id), vec![0; 4], self.id(name)].concat();
        self.record(0x02, &loaded);
        let statics: Vec<(u64, u64)> = statics.iter().map(|(name, value)| (self.name(name), *value)).collect();
        let fields: Vec<(u64, u8)> = fields.iter().map(|(name, kind)| (self.name(name), *kind)).collect();
        let mut class = vec![0x20];
        class.extend(self.id(id));
        class.extend([0; 4]);
        for id in [parent, loader, 0, 0, 0, 0] {
            class.extend(self.id(id));
        }
        class.extend([0; 4]);
        // A constant, which is skipped.
        class.extend([0, 1, 0, 7, INT, 0, 0, 0, 0]);
        class.extend((statics.len() as u16).to_be_bytes());
        for (name, value) in statics {
            class.extend([self.id(name), vec![REFERENCE], self.id(value)].concat());
        }
        class.extend((fields.len() as u16).to_be_bytes());
        for (name, kind) in fields {
            class.extend([self.id(name), vec![kind]].concat());
        }
        self.heap.extend(class);
        serial
    }

    /// An object; `values` are references: first those of the class, then those of its superclasses.
    pub(crate) fn object(&mut self, id: u64, class: u64, values: &[u64]) {
        let values: Vec<u8> = values.iter().flat_map(|value| self.id(*value)).collect();
        self.instance(id, class, &values);
    }

    /// An object with encoded values.
    pub(crate) fn instance(&mut self, id: u64, class: u64, values: &[u8]) {
        let length = (values.len() as u32).to_be_bytes();
        let piece = [vec![0x21], self.id(id), vec![0; 4], self.id(class), length.to_vec(), values.to_vec()].concat();
        self.heap.extend(piece);
    }

    pub(crate) fn array(&mut self, id: u64, class: u64, elements: &[u64]) {
        let count = (elements.len() as u32).to_be_bytes();
        let elements: Vec<u8> = elements.iter().flat_map(|element| self.id(*element)).collect();
        self.heap.extend([vec![0x22], self.id(id), vec![0; 4], count.to_vec(), self.id(class), elements].concat());
    }

    pub(crate) fn byte_array(&mut self, id: u64, elements: &[u8]) {
        let count = (elements.len() as u32).to_be_bytes();
        self.heap.extend([vec![0x23], self.id(id), vec![0; 4], count.to_vec(), vec![BYTE], elements.to_vec()].concat());
    }

    /// A root by its tag; `numbers` are the thread and the frame, if the tag has them.
    pub(crate) fn root(&mut self, tag: u8, object: u64, numbers: &[u32]) {
        let mut piece = [vec![tag], self.id(object)].concat();
        if tag == 0x01 {
            piece.extend(self.id(77));
        }
        numbers.iter().for_each(|number| piece.extend(number.to_be_bytes()));
        self.heap.extend(piece);
    }

    pub(crate) fn trace(&mut self, serial: u32, frame: u64, method: &str, class_serial: u32, line: u32) {
        let method = self.name(method);
        let body = [self.id(frame), self.id(method), self.id(0), self.id(0)].concat();
        self.record(0x04, &[body, class_serial.to_be_bytes().to_vec(), line.to_be_bytes().to_vec()].concat());
        let head = [serial, 1, 1].map(u32::to_be_bytes).concat();
        self.record(0x05, &[head, self.id(frame)].concat());
    }

    pub(crate) fn segment(&mut self) {
        let heap = std::mem::take(&mut self.heap);
        self.record(0x1C, &heap);
    }

    pub(crate) fn id_bytes(&self) -> usize {
        self.id_bytes
    }

    /// Writes arbitrary bytes into the heap.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.heap.extend(bytes);
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        let heap = std::mem::take(&mut self.heap);
        if self.bytes.starts_with(b"JAVA PROFILE 1.0.1") {
            self.record(0x0C, &heap);
        } else {
            self.record(0x1C, &heap);
            self.record(0x2C, &[]);
        }
        self.bytes
    }
}
