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

#[test]
fn what_was_lost_is_told_in_the_form_of_the_rest() {
    let form = Form::default();
    let text = String::from_utf8(lines_were_lost(&form, 3)).unwrap();
    assert!(text.ends_with("ERROR lines of this log could not be written and are lost lines=3\n"));
    form.json.store(true, Ordering::Relaxed);
    let json: Value = serde_json::from_slice(&lines_were_lost(&form, 4)).unwrap();
    assert_eq!(json["lines"], 4);
}
