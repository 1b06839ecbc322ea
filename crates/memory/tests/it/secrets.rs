//! What holds a secret, and what only looks like it. Secrets here are put together as the tests run: none is written down.

use memory::secrets::{Remarks, SecretFinding, in_note, rules, scan};

/// Replaces `{h32}` by 32 characters of the alphabet `h`, and so on.
fn made(template: &str) -> String {
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15 ^ template.len() as u64;
    let mut next = |alphabet: &[u8]| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        alphabet[((state >> 33) as usize) % alphabet.len()] as char
    };
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (inside, tail) = after.split_once('}').unwrap();
        let (kind, count) = inside.split_at(1);
        let alphabet: &[u8] = match kind {
            "h" => b"0123456789abcdef",
            "a" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "l" => b"abcdefghijklmnopqrstuvwxyz0123456789",
            "U" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            "d" => b"0123456789",
            "b" => b"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
            "t" => b"abcdefghijklmnopqrstuvwxyz",
            _ => panic!("{inside}"),
        };
        (0..count.parse::<usize>().unwrap()).for_each(|_| out.push(next(alphabet)));
        rest = tail;
    }
    out + rest
}

fn found(text: &str) -> Vec<&'static str> {
    scan(text.as_bytes(), "", Remarks::Ignored).iter().map(|finding| finding.rule).collect()
}

/// One of each family, as people write them into notes.
const FAMILIES: &[(&str, &str)] = &[
    ("adobe-client-secret", "the client secret is p8e-{l32}"),
    ("age-secret-key", "AGE-SECRET-KEY-1{b58}"),
    ("alibaba-access-key-id", "we use LTAI{l20} for the bucket"),
    ("anthropic-api-key", "export ANTHROPIC_API_KEY=sk-ant-api03-{a93}AA"),
    ("artifactory-api-key", "AKCp{a69}"),
    ("atlassian-api-token", "the bot logs in with ATATT3{a186}"),
    ("aws-access-token", "deploys run as AKIA{U16}"),
    ("azure-ad-client-secret", "client: abc8Q~{a34}"),
    ("clickhouse-cloud-api-secret-key", "4b1d{a38}"),
    ("clojars-api-token", "CLOJARS_{l60}"),
    ("cloudflare-origin-ca-key", "v1.0-{h24}-{h146}"),
    ("databricks-api-token", "token dapi{h32}"),
    ("digitalocean-access-token", "do: doo_v1_{h64}"),
    ("digitalocean-pat", "do: dop_v1_{h64}"),
    ("discord-api-token", "discord_token = '{h64}'"),
    ("doppler-api-token", "dp.pt.{l43}"),
    ("dropbox-api-token", "dropbox_key = '{l15}'"),
    ("duffel-api-token", "duffel_live_{l43}"),
    ("dynatrace-api-token", "dt0c01.{l24}.{l64}"),
    ("easypost-api-token", "EZAK{l54}"),
    ("fastly-api-token", "fastly_token: '{l32}'"),
    ("flutterwave-secret-key", "FLWSECK_TEST-{h32}-X"),
    ("frameio-api-token", "fio-u-{l64}"),
    ("gcp-api-key", "maps: AIza{a35}"),
    ("github-fine-grained-pat", "push with github_pat_{a82}"),
    ("github-oauth", "gho_{a36}"),
    ("github-pat", "The token for CI is ghp_{a36}"),
    ("gitlab-pat", "glpat-{a20}"),
    ("gitlab-runner-authentication-token", "glrt-{a20}"),
    ("grafana-service-account-token", "glsa_{a32}_{h8}"),
    ("hashicorp-tf-api-token", "{l14}.atlasv1.{l66}"),
    ("heroku-api-key-v2", "HRKU-AA{a58}"),
    ("huggingface-access-token", "hf_{t34}"),
    ("linear-api-key", "lin_api_{l40}"),
    ("mailgun-private-api-token", "mailgun: key-{h32}"),
    ("new-relic-user-api-key", "new_relic_key = 'NRAK-{l27}'"),
    ("notion-api-token", "ntn_{d11}{a35}"),
    ("npm-access-token", "npm_{l36}"),
    ("openai-api-key", "OPENAI_API_KEY=sk-{a20}T3BlbkFJ{a20}"),
    ("perplexity-api-key", "pplx-{a48}"),
    ("planetscale-password", "pscale_pw_{a43}"),
    ("postman-api-token", "PMAK-{h24}-{h34}"),
    ("prefect-api-token", "pnu_{l36}"),
    ("pulumi-api-token", "pul-{h40}"),
    ("pypi-upload-token", "pypi-AgEIcHlwaS5vcmc{a70}"),
    ("rubygems-api-token", "rubygems_{h48}"),
    ("sendgrid-api-token", "SG.{l22}-{l43}"),
    ("sentry-user-token", "sntryu_{h64}"),
    ("shopify-access-token", "shpat_{h32}"),
    ("slack-bot-token", "xoxb-{d12}-{d12}{a24}"),
    ("slack-webhook-url", "https://hooks.slack.com/services/T{a8}/B{a10}/{a24}"),
    ("square-access-token", "EAAA{a56}"),
    ("stripe-access-token", "sk_live_{a30}"),
    ("telegram-bot-api-token", "telegram token: {d10}:A{a34}"),
    ("twilio-api-key", "SK{h32}"),
    ("vault-service-token", "hvs.{a100}"),
    ("generic-api-key", "db_password = \"{a24}\""),
];

/// TEAM-6: at least forty families, each found where it stands, and the finding holds no part of it.
#[test]
fn a_secret_of_each_family_is_found_by_its_rule() {
    assert!(FAMILIES.len() >= 40 && rules().count() > 200);
    let silent: Vec<_> = FAMILIES
        .iter()
        .map(|(rule, template)| (*rule, made(&format!("# Notes\n\nSaid on Monday:\n{template}\nand then lunch\n"))))
        .filter(|(rule, text)| !found(text).contains(rule))
        .collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

/// TEAM-6: a private key is found over several lines, in whatever dress.
#[test]
fn a_private_key_is_found_whatever_its_kind() {
    for kind in ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""] {
        let dash = "-----";
        let body = made("{a64}\n{a64}\n{a64}\n");
        let text =
            format!("keep this:\n{dash}BEGIN {kind}PRIVATE KEY{dash}\n{body}{dash}END {kind}PRIVATE KEY{dash}\n");
        let findings = scan(text.as_bytes(), "", Remarks::Ignored);
        let is_key = |finding: &SecretFinding| (finding.rule, finding.line) == ("private-key", 2);
        assert!(findings.iter().any(is_key), "{kind}: {findings:?}");
    }
}

/// TEAM-6: what stands for a secret is none: placeholders, references, hashes, examples, prose.
#[test]
fn what_only_looks_like_a_secret_is_passed_over() {
    let key = "aws_access_key = AKIA";
    let silent = [
        "api_key = \"your-api-key-here\"".to_owned(),
        "API_KEY=${API_KEY}".to_owned(),
        "password: {{ vault_password }}".to_owned(),
        "token = os.environ['GITHUB_TOKEN']".to_owned(),
        "secret_key = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
        format!("{key}IOSFODNN7EXAMPLE"),
        format!("{key}XXXXXXXXXXXXXXXX"),
        made("commit {h40}"),
        made("checksum = \"{h64}\""),
        made("request {h8}-{h4}-{h4}-{h4}-{h12} failed"),
        "The key is to ask Ada before the deploy, and the token belongs to her.".to_owned(),
        "primary_key = customer_account_identifier".to_owned(),
        "ghp_ is how tokens of GitHub begin".to_owned(),
        "const accessTokenExpirationMinutes = 30".to_owned(),
        "let private_key: EcPrivateKeyRfc5915Der = mine.as_der();".to_owned(),
    ];
    for text in silent {
        assert_eq!(found(&text), Vec::<&str>::new(), "{text}");
    }
}

/// How people and programs put a secret whose form is known into a text.
const AROUND_A_FORM: &[&str] = &[
    "The one for staging is SECRET. Keep it.",
    "It works (SECRET) since May.",
    "ada,SECRET,2026-01-02",
    "git clone https://ada:SECRET@git.acme.io/r.git",
    "https://git.acme.io/v1?t=SECRET&page=2",
    "https://git.acme.io/?h=Bearer%20SECRET%22",
    "<t>SECRET</t>",
    r#"{"text":"{\"up\": \"SECRET\", \"b\": 1}"}"#,
    r#"{"text":"use this:\nSECRET\nthanks"}"#,
    "ups: [SECRET, b]",
    "{u:SECRET}",
    "|who|SECRET|x|",
    "**SECRET**",
    "use “SECRET” there",
    "\u{feff}SECRET\r\n",
    "cat <<EOF\nA=SECRET\nEOF\n",
    "<SECRET>",
    "\u{1b}[32mSECRET\u{1b}[0m",
    r#"{"a":"\u0022SECRET\u0022"}"#,
    "密钥：SECRET。请保密",
];

/// The same for one that only its name gives away.
const AROUND_A_NAME: &[&str] = &[
    "The NAME key for staging is SECRET and it rotates.",
    "- **NAME key:** SECRET",
    "**NAME key**: SECRET",
    "- `NAME_KEY`: `SECRET`",
    "| NAME key | SECRET | ops |",
    "NAME key: “SECRET”",
    "set_NAME_key(\"SECRET\")",
    r#"{"text":"{\"NAME_key\": \"SECRET\", \"b\": 1}"}"#,
    "https://api.acme.io/v1?NAME_key=SECRET&page=2",
    "<conf><NAME_key>SECRET</NAME_key></conf>",
    "auth: {NAME_key: SECRET}",
    "\u{feff}NAME_KEY=SECRET\r\n",
    "ENV['NAME_KEY'] = \"SECRET\"",
    "var NAMEKey = @\"SECRET\";",
    "cmd --NAME-key SECRET --verbose",
    "ENV NAME_TOKEN SECRET",
    "NAME key - SECRET",
    "- name: NAME_KEY\n  value: SECRET\n",
    r#"{"name": "NAME_KEY", "value": "SECRET"}"#,
    r#""{\\\"NAME_key\\\":\\\"SECRET\\\"}""#,
    "NAME key：SECRET。",
];

/// TEAM-6: in prose, addresses, tables and texts within texts, as in source.
#[test]
fn a_secret_is_found_whatever_stands_around_it() {
    let forms = [
        ("anthropic-api-key", "sk-ant-api03-{a93}AA"),
        ("openai-api-key", "sk-{a20}T3BlbkFJ{a20}"),
        ("stripe-access-token", "sk_live_{a30}"),
        ("gcp-api-key", "AIza{a35}"),
        ("npm-access-token", "npm_{l36}"),
        ("azure-ad-client-secret", "abc8Q~{a34}"),
        ("atlassian-api-token", "ATATT3{a186}"),
        ("digitalocean-pat", "dop_v1_{h64}"),
        ("sourcegraph-access-token", "sgp_{h40}"),
        ("github-pat", "ghp_{a36}"),
    ];
    let names = [
        ("datadog-access-token", "datadog", "{l40}"),
        ("algolia-api-key", "algolia", "{l32}"),
        ("heroku-api-key", "heroku", "{h8}-{h4}-{h4}-{h4}-{h12}"),
        ("dropbox-api-token", "dropbox", "1{l14}"),
        ("okta-access-token", "okta", "00{a40}"),
    ];
    let mut silent = Vec::new();
    for (rule, form) in forms {
        for around in AROUND_A_FORM {
            let text = around.replace("SECRET", &made(form));
            if !found(&text).contains(&rule) {
                silent.push((rule, *around));
            }
        }
    }
    for (rule, name, form) in names {
        for around in AROUND_A_NAME {
            let text = around.replace("SECRET", &made(form)).replace("NAME", name);
            if !found(&text).contains(&rule) {
                silent.push((rule, *around));
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
    assert_eq!(found(&made("https://x.acme.io/sk_live_{a30}/y")), ["stripe-access-token"]);
}

/// TEAM-6: a password in an address is one, a word in its place is none.
#[test]
fn a_password_in_an_address_is_found() {
    for around in [
        "DATABASE_URL=postgres://app:{a16}@db.acme.io:5432/prod",
        "redis: redis://:{a16}@cache.acme.io:6379/0",
        "Clone https://ada:{a18}@git.acme.io/x.git.",
        "mongodb+srv://app:{a20}@c0.acme.io/?w=1",
    ] {
        assert_eq!(found(&made(around)), ["generic-url-password"], "{around}");
    }
    for text in [
        "postgres://user:password@localhost:5432/db",
        "postgres://user:password123@localhost/db",
        "https://user:pass@example.org/",
        "https://$USER:$PASSWORD@git.acme.io/",
        "https://{user}:{password}@git.acme.io/",
        "https://ada:********@git.acme.io/",
        "postgresql://user:correct%20horse%20battery%20staple@localhost",
        "http://[::1]:8080/a@b",
        "ssh://git@git.acme.io:2222/x",
    ] {
        assert_eq!(found(text), Vec::<&str>::new(), "{text}");
    }
}

/// TEAM-6: the wider surroundings let no name of a program, no hash and no placeholder in.
#[test]
fn names_hashes_and_placeholders_are_none_in_wider_surroundings_either() {
    let silent = [
        "use crate::encoding::{AsDer, EcPrivateKeyBin, EcPrivateKeyRfc5915Der};".to_owned(),
        "the same key that was passed to |CRYPTO_gcm128_init|.".to_owned(),
        "define_interface!(IX509PrivateKey, IX509PrivateKey_Vtbl, 0x728ab30c);".to_owned(),
        "The cache key is feature-flag-2024-rollout here.".to_owned(),
        made("The cache key is {h40} here."),
        made("The token is {h8}-{h4}-{h4}-{h4}-{h12}, by the log."),
        "| key | description-of-it-2 |".to_owned(),
        "The algolia index is products_and_categories_v2_live1, rebuilt nightly.".to_owned(),
        made("sourcegraph shows commit/{h40}) as a link"),
        "curl -H \"X-Api-Key: YOUR_API_KEY\" https://x".to_owned(),
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
        made("key: pk_live_{a24}"),
        made("The datadog agent was built from commit {h40} on Monday."),
        made("heroku release {h8}-{h4}-{h4}-{h4}-{h12} is live"),
        "- name: CACHE_KEY\n  value: build-cache-linux-2024\n".to_owned(),
        "token TokenKindIdentifier2024 is unused".to_owned(),
        "The password is in 1Password, vault Infra, item cairn-deploy-2026.".to_owned(),
    ];
    for text in silent {
        assert_eq!(found(&text), Vec::<&str>::new(), "{text}");
    }
}

/// TEAM-6: some rules are about certain files alone.
#[test]
fn a_rule_about_files_of_a_kind_looks_at_no_other() {
    let text = made("password = \"{l16}\"\n");
    let rules_at = |path: &str| -> Vec<&str> {
        scan(text.as_bytes(), path, Remarks::Ignored).iter().map(|finding| finding.rule).collect()
    };
    assert!(rules_at("infra/main.tf").contains(&"hashicorp-tf-password"));
    assert!(!rules_at("infra/main.rs").contains(&"hashicorp-tf-password"));
    let named = scan(b"", "keys/site.p12", Remarks::Ignored);
    assert_eq!(named.iter().map(|finding| (finding.rule, finding.line)).collect::<Vec<_>>(), [("pkcs12-file", 0)]);
    assert!(scan(made("ghp_{a36}").as_bytes(), "web/node_modules/x/index.js", Remarks::Ignored).is_empty());
}

/// TEAM-6: people may excuse a line; a text that a model wrote cannot excuse itself.
#[test]
fn a_remark_excuses_a_line_only_where_remarks_are_heeded() {
    let text = made("token: ghp_{a36} # gitleaks:allow\n");
    assert!(scan(text.as_bytes(), "", Remarks::Heeded).is_empty());
    assert_eq!(scan(text.as_bytes(), "", Remarks::Ignored).len(), 1);
}

/// TEAM-6: a rule that knows whose secret it is speaks for the one that does not.
#[test]
fn a_secret_is_told_once_by_the_rule_that_knows_it() {
    assert_eq!(found(&made("github_token = \"ghp_{a36}\"")), ["github-pat"]);
    let text = made("a\nb\nghp_{a36}\nc\nglpat-{a20}\n");
    let lines: Vec<_> = scan(text.as_bytes(), "", Remarks::Ignored).iter().map(|one| (one.rule, one.line)).collect();
    assert_eq!(lines, [("github-pat", 3), ("gitlab-pat", 5)]);
}

/// TEAM-6: there is none in this project's own source and documents.
#[test]
fn the_project_holds_no_secret() {
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = files::Root::open(std::fs::canonicalize(top).unwrap()).unwrap();
    let enter = |folder: &std::path::Path| !["target", ".git"].iter().any(|name| folder.ends_with(name));
    let mut looked = 0;
    for file in root.walk(enter).unwrap() {
        let Ok(snapshot) = root.read(&file.path, 16 << 20) else { continue };
        let path = file.path.to_string_lossy();
        let is_text = !snapshot.bytes.iter().take(8_000).any(|byte| *byte == 0);
        let findings = if is_text { scan(&snapshot.bytes, &path, Remarks::Heeded) } else { Vec::new() };
        assert!(findings.is_empty(), "{path}: {findings:?}");
        looked += 1;
    }
    assert!(looked > 200);
}

/// SHELF-2: a password that a note tells in words or in an address is found; what only speaks of passwords is none.
#[test]
fn a_password_in_a_note_is_found() {
    for text in [
        "Connect with postgres://app:hunter2@db.internal/shop.",
        "redis://:s3cr3tpw@cache or amqp://worker:rabbit@queue:5672",
        "The password is hunter2.",
        "the password for the staging database is `Tr0ub4dor&3`, ask Vera",
        "Admin password: letme1n!",
        "The PIN of the door is 493817",
        "Das Passwort ist Sommer2024",
    ] {
        assert!(in_note(text).is_some(), "{text}");
    }
    for text in [
        "postgres://user:pass@host/db is the form, and postgres://app:$DB_PASSWORD@db or https://x:<token>@host too",
        "The password is in the vault, and the password is rotated every 90 days.",
        "The password is stored as sha256-crypt; a password is required.",
        "Password: see 1Password. The password of the robot is kept by Vera.",
        "http://localhost:8080/a@b and ssh://git@host:22/x",
        "the pin is on the board; a PIN is needed",
    ] {
        assert_eq!(in_note(text), None, "{text}");
    }
}
