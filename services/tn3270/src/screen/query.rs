//! Query replies of this terminal.

use super::buffer::{DEFAULT_COLUMNS, DEFAULT_ROWS, Screen};
use crate::codec::{Aid, CharacterSet, QueryReply, query_code};

/// Width and height of a character in points, those of a 3279 model 2.
const CELL: (u8, u8) = (9, 12);
/// The graphic set of APL and line drawing: 963, code page 310.
const APL_SET: u32 = 963 << 16 | 310;
const BLINK_TO_INTENSIFY: [u8; 4] = [0xf1, 0xf2, 0xf4, 0xf8];

impl Screen {
    /// The query replies that `codes` name, or all, as a record. If none of them is known, the Null reply.
    pub fn query_replies(&self, codes: Option<&[u8]>) -> Vec<u8> {
        let mut record = vec![Aid::StructuredField.octet()];
        let mut has_any = false;
        for reply in self.replies() {
            if codes.is_none_or(|codes| codes.contains(&reply.code())) {
                reply.write(&mut record);
                has_any = true;
            }
        }
        if !has_any {
            QueryReply::Null.write(&mut record);
        }
        record
    }

    fn replies(&self) -> Vec<QueryReply> {
        let (rows, columns) = self.config.model.alternate();
        let positions = rows.saturating_mul(columns);
        let shown = |color: u8| if self.config.has_color { color } else { 0 };
        let colors = core::iter::once((0, 0xf4)).chain((0xf1..=0xff).map(|color| (color, shown(color))));
        let mut replies = vec![
            QueryReply::UsableArea {
                columns,
                rows,
                buffer_positions: positions,
                cell_width: CELL.0,
                cell_height: CELL.1,
            },
            QueryReply::AlphanumericPartitions { partitions: 0, positions },
            QueryReply::CharacterSets {
                has_graphic_escape: true,
                sets: vec![
                    CharacterSet {
                        store: 0,
                        flags: 0x10,
                        local: 0,
                        graphic_set: Some(self.config.code_page.graphic_set()),
                    },
                    CharacterSet { store: 1, flags: 0, local: 0xf1, graphic_set: Some(APL_SET) },
                ],
            },
            QueryReply::Color(colors.collect()),
            QueryReply::Highlighting(
                core::iter::once((0, 0xf0)).chain(BLINK_TO_INTENSIFY.map(|value| (value, value))).collect(),
            ),
            QueryReply::ReplyModes(vec![0, 1, 2]),
            QueryReply::Ddm {
                inbound_bytes: self.config.transfer_bytes,
                outbound_bytes: self.config.transfer_bytes,
            },
            QueryReply::ImplicitPartition {
                default: (DEFAULT_COLUMNS, DEFAULT_ROWS),
                alternate: (columns, rows),
            },
        ];
        let codes = core::iter::once(query_code::SUMMARY).chain(replies.iter().map(QueryReply::code));
        replies.insert(0, QueryReply::Summary(codes.collect()));
        replies
    }
}
