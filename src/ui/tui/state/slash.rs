//! Slash commands: what there is, what was typed, what completes it.

use crate::domain::text::nearest;
use crate::domain::{Judgement, Lang};

/// A command for whoever owns the session.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Diagnose(String),
    Alerts(Option<String>),
    Sessions,
    Resume(String),
    Tools,
    Sources,
    Model(Option<String>),
    Feedback { judgement: Judgement, cause: Option<String> },
    Export(Option<String>),
}

/// What was typed.
#[derive(Debug, Clone, PartialEq)]
pub enum Typed {
    /// For the owner of the session.
    Command(Command),
    Trace,
    /// One piece of evidence, or all.
    Evidence(Option<String>),
    Language(Lang),
    Theme(Option<String>),
    Fact(String),
    Clear,
    Help,
    Quit,
}

/// Name, arguments, what it does in English and Chinese.
pub const COMMANDS: [(&str, &str, &str, &str); 17] = [
    ("diagnose", "FILE|DIR|URL", "diagnose an alert or an incident folder", "诊断告警或事故目录"),
    ("alerts", "[URL]", "pick an alert from Alertmanager", "从 Alertmanager 选择告警"),
    ("sessions", "", "list stored sessions and open one", "列出并打开已保存的会话"),
    ("resume", "ID|last", "go on with a stored session", "继续已保存的会话"),
    ("tools", "", "list the tools", "列出工具"),
    ("sources", "", "how the sources answered", "数据来源状态"),
    ("model", "[NAME]", "show or choose the model profile", "查看或切换模型"),
    ("trace", "", "the timeline of this run", "本次运行的时间线"),
    ("evidence", "[E3]", "the evidence, or one piece in full", "证据列表，或某条证据全文"),
    ("fact", "TEXT", "tell the agent something that you know", "补充已知事实"),
    ("feedback", "right|wrong [CAUSE]", "say whether the diagnosis was right", "反馈诊断是否正确"),
    ("export", "[FILE]", "write this session as Markdown", "导出本次会话 (Markdown)"),
    ("lang", "en|zh", "the language of the screen", "界面语言"),
    ("theme", "dark|light|16|none", "the colours of the screen", "界面配色"),
    ("clear", "", "empty the screen", "清空屏幕"),
    ("help", "", "keys and commands", "按键与命令"),
    ("quit", "", "leave", "退出"),
];

/// Reads a line that begins with `/`.
///
/// # Errors
/// What is wrong and what was expected, in the user's language.
pub fn parse(line: &str, lang: Lang) -> Result<Typed, String> {
    let line = line.trim().trim_start_matches('/');
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let given = (!rest.is_empty()).then(|| rest.to_owned());
    let needed = |what: &str| given.clone().ok_or_else(|| usage(name, what, lang));
    Ok(match name {
        "diagnose" => Typed::Command(Command::Diagnose(needed("FILE|DIR|URL")?)),
        "alerts" => Typed::Command(Command::Alerts(given)),
        "sessions" => Typed::Command(Command::Sessions),
        "resume" => Typed::Command(Command::Resume(needed("ID|last")?)),
        "tools" => Typed::Command(Command::Tools),
        "sources" => Typed::Command(Command::Sources),
        "model" => Typed::Command(Command::Model(given)),
        "trace" => Typed::Trace,
        "evidence" => Typed::Evidence(given.map(|id| id.to_uppercase())),
        "fact" => Typed::Fact(needed("TEXT")?),
        "feedback" => Typed::Command(feedback(rest, lang)?),
        "export" => Typed::Command(Command::Export(given)),
        "lang" => Typed::Language(match rest {
            "en" => Lang::En,
            "zh" => Lang::Zh,
            _ => return Err(usage(name, "en|zh", lang)),
        }),
        "theme" => Typed::Theme(given),
        "clear" => Typed::Clear,
        "help" => Typed::Help,
        "quit" | "exit" => Typed::Quit,
        unknown => return Err(no_such(unknown, lang)),
    })
}

fn feedback(rest: &str, lang: Lang) -> Result<Command, String> {
    let (verdict, cause) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let judgement = Judgement::of_id(verdict).ok_or_else(|| usage("feedback", "right|wrong [CAUSE]", lang))?;
    let cause = cause.trim();
    Ok(Command::Feedback { judgement, cause: (!cause.is_empty()).then(|| cause.to_owned()) })
}

fn usage(name: &str, arguments: &str, lang: Lang) -> String {
    lang.pick(format!("expected /{name} {arguments}"), format!("用法：/{name} {arguments}"))
}

fn no_such(name: &str, lang: Lang) -> String {
    let shown = crate::domain::text::clean_line(name, 40);
    match nearest(name, COMMANDS.iter().map(|(name, ..)| *name)) {
        Some(near) => lang.pick(
            format!("there is no /{shown}: did you mean /{near}?"),
            format!("没有命令 /{shown}：是否想输入 /{near}？"),
        ),
        None => lang.pick(
            format!("there is no /{shown}: /help lists the commands"),
            format!("没有命令 /{shown}：/help 列出所有命令"),
        ),
    }
}

/// The commands that a line may become; none once its name is followed by a blank.
pub fn completions(line: &str) -> Vec<&'static (&'static str, &'static str, &'static str, &'static str)> {
    let Some(typed) = line.strip_prefix('/').filter(|typed| !typed.contains(char::is_whitespace)) else {
        return Vec::new();
    };
    COMMANDS.iter().filter(|(name, ..)| name.starts_with(typed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_arguments() {
        let of = |line: &str| parse(line, Lang::En);
        assert_eq!(of("/diagnose  a b.json "), Ok(Typed::Command(Command::Diagnose("a b.json".into()))));
        assert_eq!(of("/evidence e3"), Ok(Typed::Evidence(Some("E3".into()))));
        let wrong = Command::Feedback { judgement: Judgement::Wrong, cause: Some("a full disk".into()) };
        assert_eq!(of("/feedback wrong a full disk"), Ok(Typed::Command(wrong)));
        assert_eq!(of("/lang zh"), Ok(Typed::Language(Lang::Zh)));
    }

    #[test]
    fn what_is_wrong_names_what_was_expected() {
        assert_eq!(parse("/resume", Lang::En), Err("expected /resume ID|last".into()));
        assert_eq!(parse("/diagnos x", Lang::En), Err("there is no /diagnos: did you mean /diagnose?".into()));
        assert_eq!(parse("/zzz", Lang::Zh), Err("没有命令 /zzz：/help 列出所有命令".into()));
        assert_eq!(parse("/feedback maybe", Lang::En), Err("expected /feedback right|wrong [CAUSE]".into()));
    }

    #[test]
    fn a_beginning_completes_and_every_command_is_known() {
        let names = |line: &str| completions(line).iter().map(|(name, ..)| *name).collect::<Vec<_>>();
        assert_eq!(names("/s"), ["sessions", "sources"]);
        assert_eq!(names("/diagnose x"), Vec::<&str>::new());
        assert_eq!(names("text"), Vec::<&str>::new());
        for (name, ..) in COMMANDS {
            let known = parse(&format!("/{name}"), Lang::En);
            assert!(!known.is_err_and(|error| error.contains("there is no")), "{name}");
        }
    }
}
