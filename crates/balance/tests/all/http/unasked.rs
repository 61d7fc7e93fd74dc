//! Bytes that a back end sends unasked never become a client's answer. Those that come before the next
//! request are among the strays of the simulated tests, and `net` tests that its loops tell of them.

use crate::support::http::*;

#[test]
fn bytes_in_a_buffer_behind_a_complete_answer_are_nobodys_answer() {
    // The size of a receive buffer: the answer fills one, and the rest comes in another.
    const BUFFER: usize = 32 * 1024;
    on_both(|io| {
        let back = BackEnd::new(|peer, number, all| {
            while let Some(request) = peer.request() {
                all.note(request);
                let mut answer = ok(&"x".repeat(BUFFER));
                let more = answer.len() - BUFFER;
                answer = ok(&"x".repeat(BUFFER - more));
                assert_eq!(answer.len(), BUFFER);
                if number == 0 {
                    answer += &ok("unasked");
                }
                peer.say(answer);
            }
        });
        let (_balancer, mut client) = balancer_and_client(io, &[back.address]);
        client.say(get("/1") + &get("/2"));
        for _ in 0..2 {
            let answer = client.answer().unwrap();
            assert!(answer.body.starts_with(b"xxx"), "{io}: {answer:?}");
        }
        assert_eq!(back.connections(), 2);
    });
}
