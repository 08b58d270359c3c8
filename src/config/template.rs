//! The commented file that `oncall config init` writes.

/// Every line is a comment or a default, so that the file changes nothing until somebody edits it.
pub const TEMPLATE: &str = r#"# oncall.toml: read from the working folder, its parents, or the XDG config folder.
# Every value below is the default. Each can also be set by a variable: ONCALL_AGENT_MAX_STEPS=20.
# `oncall config show` prints what is in force and where it came from.

# "none": the embedded rules reasoner alone; else the name of a profile below.
model = "none"

# [models.nim]
# provider = "openai"        # any OpenAI-compatible endpoint; or anthropic, or replay (with file = "exchanges.jsonl")
# base_url = "https://integrate.api.nvidia.com/v1"
# model = "nvidia/nemotron-3-super-120b-a12b"
# api_key_env = "NVIDIA_API_KEY"     # the name of a variable, never a key
# context = 131072           # tokens; without it 32768
# price = { input = 0.5, output = 1.5, cached = 0.05 }   # per million tokens
# temperature = 0.2
# seed = 1
# max_tokens = 4096          # of one answer
# stream = true
# tools = true               # false: tools stand in the prompt
# response_format = "schema" # schema | object | instruction; what is refused is stepped down by itself
# body = {}                  # added to every request as it stands
# headers = {}               # tls, proxy and time-outs as of the embedder

# [roles]                    # another profile for one role
# planner = "nim"            # also executor, synthesizer

[embedder]
kind = "embedded"            # multilingual, in the binary: needs no server and no key
# kind = "openai"            # any OpenAI-compatible /embeddings instead; then `oncall index --rebuild`
# base_url = "https://integrate.api.nvidia.com/v1"
# model = "nvidia/nv-embedqa-e5-v5"
# api_key_env = "NVIDIA_API_KEY"     # the name of a variable, never a key
# input_type = true          # NVIDIA NIM: tell passages from queries
# dimensions = 1024          # without it, as the service answers
# floor = 0.25               # cosine under which a passage is no match; `oncall search` shows your model's cosines
# headers = {}
# tls = { ca_file = "ca.pem" }       # also cert_file, key_file, insecure_skip_verify
# proxy = "http://proxy:3128"
# connect_timeout = "10s"
# read_timeout = "2m"

[knowledge]
# paths = ["docs-kb"]        # folders of runbooks; without any: ./docs-kb, else the runbooks in the binary
store = "knowledge"          # a folder below the data folder
top_k = 3                    # passages shown
fetch_runbooks = false       # fetch the runbook_url of an alert when it is none of the indexed documents
chunk = { size = 1600, overlap = 100, min = 300 }    # characters
index = { kind = "auto", lists = 128 }               # auto | none | ivf_flat

# [knowledge.rerank]         # order the best passages anew: /rerank as Cohere, Jina and vLLM have it
# base_url = "http://localhost:8000/v1"
# model = "BAAI/bge-reranker-v2-m3"
# api_key_env = "RERANK_API_KEY"
# top_n = 20                 # candidates that are sent; headers, tls, proxy and time-outs as above

[agent]
max_steps = 10               # rounds of execute and replan
max_nodes = 30               # node runs in all
tool_timeout = "10s"         # deadline of one call
tool_failures = 3            # failures in a row that close a tool for the run
max_time = "5m"              # after this the best answer so far is given
# max_tokens = 50000         # of a run with a model, in and out
# max_cost = 0.5             # by the prices of its profile
# prompts = "prompts"        # a folder of templates that replace those of the same name; see `oncall prompts eject`

# [sources.prod]             # any number; several of a kind are all asked; `oncall doctor` checks each
# kind = "prometheus"        # also Thanos, Mimir, VictoriaMetrics; or one of the kinds below
# url = "http://prometheus:9090"
# auth = { bearer_env = "PROM_TOKEN" }   # or token_file = "…", basic = { user = "…", password_env = "…" }
# tenant = "shop"            # X-Scope-OrgID of Mimir and Loki
# select = { cluster = "prod" }          # only for alerts with these labels
# headers = {}               # tls, proxy and time-outs as of the embedder
#
# [sources.alerts]
# kind = "alertmanager"      # for `oncall diagnose --from-alertmanager`
# url = "http://alertmanager:9093"
#
# [sources.logs]
# kind = "elasticsearch"     # and OpenSearch; also auth = { api_key_env = "…" }, cloud_id = "…" instead of url
# url = "http://elasticsearch:9200"
# index = "logs-*"           # an index, a data stream, or a pattern; without it all
# limit = 50000              # events that one question reads at most
# fields = { service = "service.name" }  # also time, instance, level, message; without it the usual names are tried
#
# [sources.loki]
# kind = "loki"              # or "victorialogs" (url = "http://victorialogs:9428"); limit and fields as above
# url = "http://loki:3100"
#
# [sources.cluster]
# kind = "kubernetes"        # the kubeconfig's current context, or the service account of the pod
# context = "prod"           # kubeconfig = "…"; namespaces = ["shop"]; logs = true reads the logs of pods
#
# [sources.host]
# kind = "files"             # logs of this machine, with their rotated parts
# paths = ["/var/log/shop/*.log"]        # timezone = "Asia/Shanghai" for stamps that name none

[redact]                     # what is taken out of text before a model or service gets it
enabled = "remote"           # always | remote (not for services on this machine) | never
emails = true                # e-mail addresses too, beside keys, passwords, tokens, cookies, cards, private keys
# patterns = ["EMP-[0-9]{6}"]        # further regular expressions; of one with a group, the first group

# [mcp.time]                 # an MCP server: its tools are time__NAME; `oncall mcp add|list|remove`
# command = "mcp-server-time"        # started on standard streams, with args, env, cwd; or
# url = "http://localhost:8003/mcp"  # streamable HTTP, with headers, tls, proxy
# auth = { bearer_env = "TIME_TOKEN" }       # or token_file; ${NAME} stands for a variable in args, env, url and headers
# allow = ["get_*"]          # tools that may run unattended though they do not say that they only read
# deny = []                  # tools that are not taken
# provides = ["logs"]        # also metrics, status: used as a source, when it speaks as `oncall mcp serve` does
# start_timeout = "30s"
# protocol = "auto"          # auto | initialize (2025-11-25 and before) | discover (2026-07-28)

# [regions]                  # names of regions by their code, for `oncall mcp serve logs`
# ap-shanghai = ["Shanghai", "上海"]

# [topics.orders]            # a log topic; a service that none names is one itself
# region = "ap-shanghai"
# services = ["order-service", "payment-service"]
# description = "orders and payments"

[sessions]
url = "sqlite"               # sessions.db below the data folder; or postgres://user@host/database
"#;

#[cfg(test)]
mod tests {
    use super::super::{Overrides, layers};

    #[test]
    fn the_template_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let around = layers::Surroundings { working_dir: dir.path().into(), ..Default::default() };
        let before = layers::load(&Overrides::default(), &around).unwrap();
        std::fs::write(dir.path().join("oncall.toml"), super::TEMPLATE).unwrap();
        let mut after = layers::load(&Overrides::default(), &around).unwrap();
        after.file = None;
        after.values = before.values.clone();
        assert_eq!(after, before);
    }
}
