//! A rate that changed while it was measured, as a part of a sentence.

use crate::Drift;
use readings::text::{counted, percent};

/// `became 31% faster [+22%, +40%] from the first third of a block's slices to the last, in 7 blocks: it
/// was not warm; …`.
pub fn drift(found: &Drift) -> String {
    let share = |ratio: f64, signed: bool| percent((ratio - 1.0) * 100.0, 0, signed);
    let (low, high) = found.interval;
    let blocks = counted(found.blocks, "block");
    let over = "from the first third of a block's slices to the last";
    match found.late_over_early > 1.0 {
        true => format!(
            "became {} faster [{}, {}] {over}, in {blocks}: it was not warm; a longer warm-up \
             (`warmup`, `warmup_max`) or window shows its later speed",
            share(found.late_over_early, false),
            share(low, true),
            share(high, true),
        ),
        false => format!(
            "became {} slower [{}, {}] {over}, in {blocks}: its figures depend on the length of the \
             window; a longer one shows whether it settles",
            percent((1.0 - found.late_over_early) * 100.0, 0, false),
            share(low, true),
            share(high, true),
        ),
    }
}
