//! A fleet as a table: a row for each service, those with too little first, then the most wasted.

use super::super::super::words::name_of;
use super::cell;
use crate::record::{FleetDocument, ServiceRecord};
use crate::report::summary::fleet::by_waste;

const HEAD: &str = "service,index,verdict,line_bytes,limit_bytes,declared_bytes,wasted_bytes,last_bytes,heap_bytes,\
    node,other_cpu,trials,seconds,text";

/// Every service.
pub fn fleet_csv(document: &FleetDocument) -> String {
    let rows = by_waste(document).into_iter().map(|of| format!("{}\r\n", row(of).join(",")));
    std::iter::once(format!("{HEAD}\r\n")).chain(rows).collect()
}

fn row(of: &ServiceRecord) -> Vec<String> {
    let line = of.line.as_ref();
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    let mut cells = vec![cell(&of.name), of.index.to_string(), name_of(of.verdict)];
    cells.extend([line.map(|line| line.limit_bytes), of.limit_bytes, of.declared_bytes].map(bytes));
    cells.push(of.wasted_bytes.map(|bytes| bytes.to_string()).unwrap_or_default());
    cells.extend([of.last_bytes, line.and_then(|line| line.heap_bytes)].map(bytes));
    cells.extend([cell(&of.node), of.other_cpu.to_string(), of.trials.to_string(), of.seconds.to_string()]);
    cells.push(cell(&of.text));
    cells
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::hostile_texts;
    use super::*;
    use crate::report::fleet_sample;

    #[test]
    fn a_row_for_each_service() {
        insta::assert_snapshot!(fleet_csv(&fleet_sample::fleet()).replace("\r\n", "\n"));
    }

    #[test]
    fn every_text_stays_in_its_cell() {
        for text in hostile_texts() {
            let table = fleet_csv(&fleet_sample::hostile(&text));
            let rows = ::csv::ReaderBuilder::new().flexible(false).from_reader(table.as_bytes()).into_records();
            assert_eq!(rows.map(Result::unwrap).count(), 11, "{text}");
        }
    }
}
