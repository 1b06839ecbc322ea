//! What every provider must do where the server, the way or the request is bad.

use super::*;

pub(crate) async fn an_overloaded_server_is_asked_again(dialect: &impl Dialect) {
    let good = wire::stream(&dialect.events(&greeting(dialect)));
    let server = Server::start(vec![busy(dialect, 529, &[]), busy(dialect, 500, &[]), good]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!(retries(&events).iter().map(|retry| retry.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(restarts(&events), 0, "nothing had been shown");
    let bodies: Vec<String> = server.received().into_iter().map(|request| request.body).collect();
    assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]));
}

pub(crate) async fn a_server_that_stays_busy_is_given_up(dialect: &impl Dialect) {
    let server = Server::start(vec![busy(dialect, 529, &[])]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Busy { status: 529, .. }));
    assert_eq!((server.received().len(), retries(&events).len()), (10, 9));
}

pub(crate) async fn a_server_that_says_when_is_obeyed(dialect: &impl Dialect) {
    let good = wire::stream(&dialect.events(&greeting(dialect)));
    let limited = busy(dialect, 429, &[("retry-after-ms", "7"), ("retry-after", "99")]);
    let server = Server::start(vec![limited, good]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(retries(&events), [(1, Duration::from_millis(7))]);
    done(&events);
}

pub(crate) async fn a_wait_that_is_too_long_is_the_users_to_decide(dialect: &impl Dialect) {
    let server = Server::start(vec![busy(dialect, 429, &[("retry-after", "3600")])]).await;
    let events = run(dialect, &server.url).await;
    let hour = Some(Duration::from_secs(3600));
    assert!(matches!(failed(&events), Error::Busy { status: 429, after, .. } if *after == hour));
    assert_eq!(server.received().len(), 1);
}

pub(crate) async fn a_cut_stream_is_asked_for_again(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let part = &whole[..whole.len() / 2];
    let mut reset = wire::stream(part);
    reset.push(Step::Reset);
    let server = Server::start(vec![wire::stream(part), wire::cut_chunk(part), reset, wire::stream(&whole)]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!(retries(&events).len(), 3);
    assert!(restarts(&events) >= 2, "a reset may swallow what was sent before it: {events:?}");
    let last = events.iter().rposition(|event| *event == Event::Restarted).unwrap();
    assert_eq!(text(&events[last..]), "Grüße, 世界! 👋", "what was shown before the restart is void");
    let bodies: Vec<String> = server.received().into_iter().map(|request| request.body).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "the same bytes, or the cache is lost");
}

pub(crate) async fn what_was_shown_is_voided_once(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let server = Server::start(vec![wire::stream(&whole[..3]), busy(dialect, 529, &[]), wire::stream(&whole)]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!((restarts(&events), retries(&events).len()), (1, 2), "the refusal showed nothing");
}

pub(crate) async fn a_stream_that_is_always_cut_fails(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let server = Server::start(vec![wire::stream(&whole[..3])]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Cut { .. }));
    assert_eq!((server.received().len(), restarts(&events)), (4, 3));
}

pub(crate) async fn only_the_farewell_may_be_missing(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let server = Server::start(vec![wire::stream(&whole[..whole.len() - 1])]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!(server.received().len(), 1);
}

pub(crate) async fn an_error_in_the_middle_of_a_stream_is_retried(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let mut part = whole[..whole.len() / 2].to_vec();
    part.push(dialect.overloaded());
    let server = Server::start(vec![wire::stream(&part), wire::stream(&whole)]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!((restarts(&events), retries(&events).len()), (1, 1));
}

/// LOOP-2: what broke off costs output, so it is asked for fewer times than what never began.
pub(crate) async fn errors_in_the_middle_of_streams_are_restarts(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let mut part = whole[..whole.len() / 2].to_vec();
    part.push(dialect.overloaded());
    let server = Server::start(vec![wire::stream(&part)]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Busy { .. }), "{events:?}");
    assert_eq!((restarts(&events), server.received().len()), (3, 4));
}

/// Events that are no JSON, no text, or make no sense where they stand.
pub(crate) async fn a_garbled_stream_is_asked_for_again(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let garbled = |bytes: &[u8]| {
        let part = whole[..whole.len() / 2].concat().into_bytes();
        vec![Step::Send([wire::stream_head(), part, bytes.to_vec()].concat())]
    };
    let answers = vec![garbled(b"data: {oops\n\n"), garbled(b"data: \xff\xfe{}\n\n"), wire::stream(&whole)];
    let server = Server::start(answers).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!((restarts(&events), retries(&events).len()), (2, 2));

    let server = Server::start(vec![garbled(b"data: {oops\n\n")]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Cut { cause, .. } if cause.contains("{oops")), "{events:?}");
    assert_eq!(server.received().len(), 4);
}

/// A server that has answered before speaks the protocol: what is no answer now was damaged on the way.
pub(crate) async fn a_garbled_answer_is_asked_for_again_where_another_was_good(dialect: &impl Dialect) {
    let good = wire::stream(&dialect.events(&greeting(dialect)));
    let no_json = wire::stream(&["data: {oops\n\n".to_owned()]);
    let page = wire::whole(200, &[("content-type", "text/html")], "<h1>Bad gateway</h1>");
    let server = Server::start(vec![good.clone(), no_json, page, good]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    done(&run_model(&*model).await);
    assert_eq!(retries(&run_model(&*model).await).len(), 2);
}

/// However often it says that there is no need to wait.
pub(crate) async fn a_server_that_wants_no_wait_is_not_stormed(dialect: &impl Dialect) {
    let good = wire::stream(&dialect.events(&greeting(dialect)));
    let limited = busy(dialect, 429, &[("retry-after", "0")]);
    let server = Server::start(vec![limited, good]).await;
    let first = Duration::from_millis(20);
    let model = dialect.model(&server.url, Retry { first, ..Retry::default() }, patience());
    let events = run_model(&*model).await;
    assert!(retries(&events)[0].1 >= first / 2, "{events:?}");
}

pub(crate) async fn a_silent_server_fails(dialect: &impl Dialect) {
    let mut answer = wire::stream(&dialect.events(&greeting(dialect))[..3]);
    answer.push(Step::Stall);
    let server = Server::start(vec![answer]).await;
    let silence = Duration::from_millis(40);
    let model = dialect.model(&server.url, Retry::immediate(), Patience { idle: silence, ..patience() });
    let events = run_model(&*model).await;
    assert!(matches!(failed(&events), Error::Idle { silence: after, .. } if *after == silence));
    assert_eq!(restarts(&events), 3);
}

pub(crate) async fn a_server_that_never_answers_fails(dialect: &impl Dialect) {
    let server = Server::start(vec![vec![Step::Stall]]).await;
    let silence = Duration::from_millis(40);
    let model = dialect.model(&server.url, Retry::immediate(), Patience { answer: silence, ..patience() });
    let events = run_model(&*model).await;
    assert!(matches!(failed(&events), Error::Idle { .. }), "{events:?}");
    assert_eq!(retries(&events).len(), 3);
}

pub(crate) async fn dropping_the_stream_ends_the_request(dialect: &impl Dialect) {
    let mut answer = wire::stream(&dialect.events(&greeting(dialect))[..3]);
    answer.push(Step::Stall);
    let mut server = Server::start(vec![answer]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    let mut events = model.stream(request());
    assert!(matches!(events.next().await, Some(Event::Started { .. })));
    drop(events);
    server.is_hung_up_on().await;
}

pub(crate) async fn nothing_is_sent_before_the_stream_is_polled(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::stream(&dialect.events(&greeting(dialect)))]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    drop(model.stream(request()));
    assert_eq!(run_model(&*model).await.len(), run_model(&*model).await.len());
    assert_eq!(server.received().len(), 2);
}

pub(crate) async fn too_long_a_prompt_is_an_overflow(dialect: &impl Dialect) {
    let body = dialect.refusal(&dialect.too_long(208_310, 200_000));
    let server = Server::start(vec![wire::whole(400, &[], &body)]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Overflow { tokens: Some(208_310), limit: Some(200_000), .. }));
    assert_eq!(server.received().len(), 1);

    let server = Server::start(vec![wire::whole(413, &[("content-type", "text/html")], "<h1>Too large</h1>")]).await;
    assert!(matches!(failed(&run(dialect, &server.url).await), Error::Overflow { tokens: None, .. }));
}

pub(crate) async fn a_wrong_key_is_told_without_showing_it(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::whole(401, &[], &dialect.refusal(&format!("invalid key {KEY}")))]).await;
    let events = run(dialect, &server.url).await;
    let error = failed(&events);
    assert!(matches!(error, Error::Auth { status: 401, message, .. } if message == "invalid key ***"), "{error}");
    assert!(error.hint().is_some());
}

pub(crate) async fn a_wrong_key_is_told_when_counting_too(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::whole(401, &[], &dialect.refusal(&format!("invalid key {KEY}")))]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    let error = model.count_tokens(request()).await.unwrap_err();
    assert!(matches!(error, Error::Auth { .. }) && !format!("{error} {error:?}").contains(KEY));
}

pub(crate) async fn a_wrong_request_is_refused_once(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::whole(400, &[], &dialect.refusal("messages.0: nonsense"))]).await;
    let events = run(dialect, &server.url).await;
    assert!(
        matches!(failed(&events), Error::Refused { status: 400, message, .. } if message == "messages.0: nonsense")
    );
    assert_eq!(server.received().len(), 1);
}

pub(crate) async fn nobody_listening_is_unreachable(dialect: &impl Dialect) {
    let url = wire::nobody().await;
    let events = run(dialect, &url).await;
    let error = failed(&events);
    assert!(matches!(error, Error::Unreachable { host, .. } if url.ends_with(host.as_str())), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(retries(&events).len(), 9);
}

pub(crate) async fn a_server_that_hangs_up_at_once_is_cut(dialect: &impl Dialect) {
    let server = Server::start(vec![vec![]]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Cut { .. }), "{events:?}");
    assert_eq!((retries(&events).len(), restarts(&events)), (3, 0));
}

pub(crate) async fn garbage_is_malformed(dialect: &impl Dialect) {
    let page = format!("<!doctype html><title>Log in</title>{}", "x".repeat(5000));
    let html = wire::whole(200, &[("content-type", "text/html")], &page);
    let ssh = vec![Step::Send(b"SSH-2.0-OpenSSH_9.9\r\n\x00\x01\x02\xff".to_vec())];
    let json = wire::whole(200, &[("content-type", "application/json")], r#"{"status":"ok"}"#);
    let empty = wire::whole(200, &[("content-type", "text/html")], "");
    let no_json = wire::stream(&["data: {oops\n\n".to_owned()]);
    let no_text = vec![Step::Send([wire::stream_head(), b"data: \xff\xfe{}\n\n".to_vec()].concat())];
    for (what, answer) in
        [("html", html), ("ssh", ssh), ("json", json), ("empty", empty), ("no json", no_json), ("no text", no_text)]
    {
        let server = Server::start(vec![answer]).await;
        let events = run(dialect, &server.url).await;
        let error = failed(&events);
        assert!(matches!(error, Error::Malformed { .. }), "{what}: {error:?}");
        assert!(error.to_string().len() < 500, "{what}: {error}");
        assert_eq!(events.len(), 1, "{what} is not retried");
    }
}

pub(crate) async fn a_redirection_is_not_followed(dialect: &impl Dialect) {
    let elsewhere = Server::start(vec![wire::stream(&dialect.events(&greeting(dialect)))]).await;
    let there = format!("{}/v1/messages", elsewhere.url);
    let server = Server::start(vec![wire::whole(307, &[("location", &there)], "")]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Malformed { message, .. } if message.contains(&there)));
    assert!(elsewhere.received().is_empty());
}

pub(crate) async fn an_endless_event_is_refused(dialect: &impl Dialect) {
    let start = [wire::stream_head(), b"data: ".to_vec()].concat();
    let server = Server::start(vec![vec![Step::Send(start), Step::Pour(vec![b'x'; 1 << 16])]]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Malformed { message, .. } if message.contains("8 MB")), "{events:?}");
}

pub(crate) async fn an_endless_body_is_refused(dialect: &impl Dialect) {
    let endless = |status| vec![Step::Send(wire::head(status, &[])), Step::Pour(vec![b'x'; 1 << 18])];
    let server = Server::start(vec![endless(200)]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Malformed { message, .. } if message.contains("64 MB")), "{events:?}");
    let server = Server::start(vec![endless(400)]).await;
    assert!(matches!(failed(&run(dialect, &server.url).await), Error::Refused { .. }));
}
