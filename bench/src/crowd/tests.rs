use clap::Parser;
use tokio::io::duplex;

use super::*;
use crate::cli::{Args, Command};

/// What a client whose number is 7 makes of this reply, given in small parts.
fn hears(reply: Vec<u8>) -> io::Result<()> {
    LocalRuntime::new()?.block_on(async {
        let (mut client, mut server) = duplex(8);
        let question = Question::of_number(7);
        let mut asked = vec![0; question.query.len()];
        spawn_local(async move {
            server.read_exact(&mut asked).await?;
            server.write_all(&reply).await
        });
        question.ask(&mut client, &mut question.buffer()).await
    })
}

#[test]
fn a_client_takes_its_own_reply_and_nothing_else() {
    let own = instant::reply_to("SELECT 7");
    hears(own.clone()).unwrap();
    let other = hears(instant::reply_to("SELECT 8")).unwrap_err().to_string();
    assert!(other.contains("SELECT 7") && other.contains("was answered by"), "{other}");
    hears([own.clone(), own.clone()].concat()).unwrap_err();
    let end = hears(own[..own.len() - 1].to_vec()).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_crowd_is_named_by_its_arguments() {
    for (ask, settings) in [(Ask::Numbers, 1), (Ask::Accounts, SETTINGS)] {
        let crowd =
            Crowd { port: 6432, pools: 16, clients: 8, threads: 6, seconds: 2, ask, settings };
        let words = ["bench", "crowd"].map(str::to_owned).into_iter().chain(crowd.args());
        let Some(Command::Crowd(named)) = Args::try_parse_from(words).unwrap().command else {
            panic!("not a crowd");
        };
        assert_eq!(named, crowd);
    }
}

#[test]
fn settings_are_as_many_as_they_are_said_to_be_and_names_are_all_different() {
    let different = |settings, from: usize| {
        let (port, pools, clients, threads, seconds, ask) = (6432, 1, 64, 2, 1, Ask::Accounts);
        let crowd = Crowd { port, pools, clients, threads, seconds, ask, settings };
        let said = (0..clients).map(|number| crowd.settings_of(number).split_off(from));
        said.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(different(1, 0), 1);
    assert_eq!(different(SETTINGS, 0), 64);
    assert_eq!(different(SETTINGS, 1), SETTINGS as usize);
}
