use serde_json::Value;

use super::*;

/// What is written in both forms: as text, without the time, and as JSON.
fn written(tell: impl Fn()) -> (String, Value) {
    let [text, json] = [false, true].map(|json| {
        let (form, page) = (Form::default(), Page::default());
        form.json.store(json, Ordering::Relaxed);
        let own = page.clone();
        let lines = registry().with(layer(form, move || own.clone()));
        subscriber::with_default(lines, &tell);
        String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
    });
    assert_eq!((text.lines().count(), json.lines().count()), (1, 1), "{text}{json}");
    let (_, line) = text.trim_end().split_once("Z ").unwrap();
    (line.trim_start().to_owned(), serde_json::from_str(&json).unwrap())
}

#[test]
fn both_forms_say_the_same() {
    let (text, json) = written(|| {
        let (cause, pool) = ("no \"such\" user\n", "app/alice");
        tracing::warn!(cause, client = 7, pool, absent = None::<i32>, "login refused");
    });
    assert_eq!(text, "WARN login refused: no \"such\" user\\n client=7 pool=app/alice");
    assert!(json["timestamp"].is_string());
    assert_eq!((&json["level"], &json["message"]), (&"WARN".into(), &"login refused".into()));
    assert_eq!(json["cause"], "no \"such\" user\n");
    assert_eq!((&json["client"], &json["pool"]), (&7.into(), &"app/alice".into()));
    assert_eq!(json.as_object().unwrap().len(), 6, "{json}");
}

/// The line of each event that the programs around it cannot all be brought to tell.
#[test]
fn each_event_has_a_line() {
    let (client, server, times) = (7, 5, 3);
    let pool = || "app/alice".to_owned();
    let cause = || "the cause".to_owned();
    let address = || Address { host: "10.0.0.7".to_owned(), port: 5432 };
    let error = || io::Error::other("the cause");
    let events = [
        (
            Event::ClientConnected {
                client,
                ends: None,
                database: "app".to_owned(),
                user: "alice".to_owned(),
            },
            "INFO logged in client=7 pool=app/alice",
        ),
        (
            Event::ClientLeft { client, pool: Some(pool()), cause: "the cause" },
            "INFO left: the cause client=7 pool=app/alice",
        ),
        (
            Event::LoginRefused { client, ends: None, pool: Some(pool()), cause: cause() },
            "WARN login refused: the cause client=7 pool=app/alice",
        ),
        (
            Event::ClientEnded { client, pool: pool(), cause: cause() },
            "WARN client ended: the cause client=7 pool=app/alice",
        ),
        (
            Event::WaitOver { client, pool: pool(), cause: cause(), times },
            "WARN no server within query_wait_timeout: the cause client=7 pool=app/alice times=3",
        ),
        (
            Event::PinIdle { server, client, pool: pool(), pins: "listen".to_owned() },
            "WARN a client is silent and keeps a server for what it has left there: listen \
             server=5 client=7 pool=app/alice",
        ),
        (
            Event::ServerRefused { server, pool: pool(), address: address(), cause: cause() },
            "WARN no connection to the server: the cause server=5 pool=app/alice \
             address=10.0.0.7:5432",
        ),
        (
            Event::ServerLost { server, client: Some(client), pool: pool(), cause: cause() },
            "WARN a server connection was lost: the cause server=5 client=7 pool=app/alice",
        ),
        (
            Event::CancelInDoubt { server, client: Some(client), pool: pool(), cause: cause() },
            "WARN a cancel may still hit a server connection, which is not used again: the cause \
             server=5 client=7 pool=app/alice",
        ),
        (
            Event::CatalogueUnread {
                address: address(),
                database: "shop".to_owned(),
                cause: cause(),
            },
            "WARN what functions do to sessions is not known, because the catalogue could not be \
             read: the cause address=10.0.0.7:5432 database=shop",
        ),
        (
            Event::RoomKnown { address: address(), room: None },
            "WARN the server does not say what it has room for address=10.0.0.7:5432",
        ),
        (
            Event::Contained { server, client: Some(client), pool: pool(), cause: cause() },
            "ERROR a server connection was closed, because its replies do not fit what was asked; \
             this is a bug of pgweir, please report it: the cause server=5 client=7 pool=app/alice",
        ),
    ];
    let others = [
        (News::AcceptFailed(error(), times), "ERROR cannot accept a client: the cause times=3"),
        (
            News::ListenFailed(error()),
            "ERROR a listener is not as the configuration has it: the cause",
        ),
        (
            News::NoSockDiag(error()),
            "WARN tcp_user_timeout has no effect, because the kernel cannot be asked about \
             connections: the cause",
        ),
    ];
    let events = events.into_iter().map(|(event, line)| (News::Log(event), line));
    for (news, line) in events.chain(others) {
        let (text, _) = written(|| tell(&news, &[]));
        assert_eq!(text, line);
    }
}

#[test]
fn what_was_lost_is_told_in_the_form_of_the_rest() {
    let form = Form::default();
    let text = String::from_utf8(lines_were_lost(&form, 3)).unwrap();
    assert!(text.ends_with("ERROR lines of this log could not be written and are lost lines=3\n"));
    form.json.store(true, Ordering::Relaxed);
    let json: Value = serde_json::from_slice(&lines_were_lost(&form, 4)).unwrap();
    assert_eq!(json["lines"], 4);
}
