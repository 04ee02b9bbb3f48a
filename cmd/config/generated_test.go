package config

import (
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/generatedtest"
)

//go:generate go test . -run ^TestGenerated -update

const docIntro = `# Configuration

<!-- Made by "go generate ./cmd/config" from the tags of config.Config; do not edit. -->

Holdfast reads its configuration from environment variables.

- An unknown ` + "`HOLDFAST_*`" + ` name is an error, so that a misspelt limit never counts as not set.
- An empty value counts as not set.
- A process reports all faults at its start, each with the remedy.

*For* says who uses a setting: ` + "`registry`, `worker`" + ` (every stage), single stages, *fetching* (the
stages that fetch from sources), ` + "`broker`, `up`, `migrate`" + `, or the *commands* that speak to a
running Holdfast. **Secret** marks values that give access: give a process only those that it uses.
[operating.md](operating.md) explains how the parts work together.
`

var (
	docLink = regexp.MustCompile(`docs/([\w-]+\.md)(#[\w-]+)?`)
	docName = regexp.MustCompile(`HOLDFAST_[A-Z_]+`)
)

// docText converts a tag to Markdown.
func docText(text string) string {
	text = strings.NewReplacer("<", "\\<", "|", "\\|", "*", "\\*").Replace(text)
	text = docLink.ReplaceAllString(text, "[$1]($1$2)")
	return docName.ReplaceAllString(text, "`$0`")
}

// shown formats a default for people; "" for none.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case slog.Level:
		return strings.ToLower(v.String())
	case Duration:
		return span(time.Duration(v))
	case Span:
		return span(time.Duration(v))
	case Rhythm:
		return time.Time{}.Add(v.Offset).Format("15:04")
	case Bytes:
		return size(int64(v))
	case Size:
		return size(int64(v))
	case Percent, Amount, Quota, Days, Lasting, Count:
		if text := fmt.Sprint(v); text != "0" {
			return text
		}
	case Yes:
		return map[Yes]string{true: "yes", false: "no"}[v]
	}
	return ""
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

func size(n int64) string {
	units := []string{"", "KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && n > 0 && n%1024 == 0 {
		n, units = n/1024, units[1:]
	}
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n, units[0])
}

func configurationDoc(t *testing.T) string {
	t.Helper()
	defaults := Default()
	var b strings.Builder
	b.WriteString(docIntro)
	for i, f := range fieldsOf(&defaults, Prefix) {
		tag := f.typ.Tag
		if subject := tag.Get("subject"); subject != "" {
			fmt.Fprintf(&b, "\n## %s\n\n", subject)
			if f.typ.Name == reflect.TypeFor[Policy]().Field(0).Name {
				b.WriteString("These may be set for one stage, which then counts instead: `HOLDFAST_DOWNLOAD_MAX_ATTEMPTS`.\n\n")
			}
			b.WriteString("| setting | meaning | default | for |\n| --- | --- | --- | --- |\n")
		} else if i == 0 {
			t.Errorf("%s has no subject", f.name)
		}
		for _, needed := range []string{"for", "want", "desc"} {
			if tag.Get(needed) == "" {
				t.Errorf("%s has no tag %s", f.name, needed)
			}
		}
		value := shown(f.value.Interface())
		switch other := tag.Get("otherwise"); {
		case value != "" && other != "":
			t.Errorf("%s has two defaults: %s and %s", f.name, value, other)
		case value != "":
			value = "`" + value + "`"
		case other != "":
			value = docText(other)
		case strings.Contains(tag.Get("want"), "0 sets no limit"):
			value = "no limit"
		default:
			value = "none"
		}
		secret := ""
		if tag.Get("secret") != "" {
			secret = "**Secret.** "
		}
		fmt.Fprintf(&b, "| `%s` | %s%s *Value:* %s. | %s | %s |\n", f.name, secret, docText(tag.Get("desc")), docText(strings.TrimSuffix(tag.Get("want"), "...")),
			value, strings.Join(strings.Fields(tag.Get("for")), ", "))
	}
	return b.String()
}

// TestGeneratedConfiguration: docs/configuration.md matches the tags, and each setting has a
// description.
func TestGeneratedConfiguration(t *testing.T) {
	generatedtest.File(t, "docs/configuration.md", configurationDoc(t))
}
