//! Keys and tokens that say by their first characters what they are, and JSON web tokens.

use std::sync::LazyLock;

use regex::Regex;

use super::detect::{Kind, Span, constant};

/// By issuer, as each documents the form of its keys.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    constant(concat!(
        // AWS
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
        // GitHub, GitLab
        r"|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}",
        r"|gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{20,}",
        // Slack, and the webhooks of Slack, Feishu, WeCom and Telegram
        r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,}",
        r"|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}",
        r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/[A-Za-z0-9-]{20,}",
        r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=[A-Za-z0-9-]{20,}",
        r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
        // Models: OpenAI and those with keys like it, Anthropic, OpenRouter, NVIDIA, Hugging Face, Groq, xAI, Replicate
        r"|sk-(?:proj|svcacct|admin|ant|or|lf)-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9]{20,}",
        r"|nvapi-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}",
        // Google
        r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,}",
        // Stripe and other shops
        r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}",
        // Packages and images
        r"|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}|dckr_pat_[A-Za-z0-9_-]{20,}|rubygems_[a-f0-9]{48}",
        // Clouds and their tools
        r"|LTAI[A-Za-z0-9]{12,24}(?-u:\b)|AKID[A-Za-z0-9]{13,40}(?-u:\b)|do[opr]_v1_[a-f0-9]{64}|hv[sbr]\.[A-Za-z0-9_-]{20,}",
        r"|glsa_[A-Za-z0-9_]{30,}|glc_[A-Za-z0-9+/=]{30,}|dapi[a-f0-9]{32}|NRAK-[A-Z0-9]{20,}|tskey-[A-Za-z0-9-]{16,}",
        r"|ATATT3[A-Za-z0-9_=-]{50,}|lin_api_[A-Za-z0-9]{30,}|ntn_[A-Za-z0-9]{40,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}",
        // Mail and telephone
        r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}|SK[0-9a-f]{32}(?-u:\b)|key-[0-9a-f]{32}(?-u:\b)",
        // JSON web tokens, signed or not
        r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    ))
});

/// Where the secret part of a webhook's URL begins.
const SECRET_PART: [&str; 4] = ["/services/", "/workflows/", "/hook/", "?key="];

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    for found in TOKEN.find_iter(text) {
        let is_inside_word = text[..found.start()].ends_with(|before: char| before.is_ascii_alphanumeric());
        if is_inside_word || !looks_made(found.as_str()) {
            continue;
        }
        let public = SECRET_PART.iter().find_map(|part| found.as_str().find(part).map(|at| at + part.len()));
        let kind = if found.as_str().starts_with("eyJ") { Kind::Token } else { Kind::ApiKey };
        spans.push(Span::new(found.start() + public.unwrap_or(0), found.end(), kind));
    }
    bare_credentials(text, spans);
}

/// Names of things are words (`sk-frontend…`); keys have digits among their letters.
fn looks_made(token: &str) -> bool {
    let is_in = |test: fn(&u8) -> bool| token.bytes().any(|byte| test(&byte));
    is_in(u8::is_ascii_digit) && is_in(u8::is_ascii_alphabetic)
}

/// `Bearer …` and `Basic …` outside of a header.
fn bare_credentials(text: &str, spans: &mut Vec<Span>) {
    static BARE: LazyLock<Regex> =
        LazyLock::new(|| constant(r"(?i-u)\b(bearer|basic)[ \t]+([A-Z0-9._~+/:-]{8,}={0,2})"));
    for found in BARE.captures_iter(text) {
        if let Some(value) = found.get(2).filter(|value| looks_random(value.as_str())) {
            let kind = if found[1].eq_ignore_ascii_case("bearer") { Kind::Token } else { Kind::Credentials };
            spans.push(Span::new(value.start(), value.end(), kind));
        }
    }
}

/// Whether a value is no word of a sentence: letters with digits among them, or capitals in the middle.
pub(super) fn looks_random(value: &str) -> bool {
    let count = |test: fn(&u8) -> bool| value.bytes().filter(test).count();
    let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    let inner_capitals = value.bytes().skip(1).filter(u8::is_ascii_uppercase).count();
    let small = count(u8::is_ascii_lowercase);
    value.len() >= 8 && ((digits >= 2 && letters >= 2) || (inner_capitals >= 2 && small >= 2))
}
