package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
)

//go:generate go test . -run ^TestGenerated -update

const docIntro = `# Configuration

<!-- Made by "go generate ./cmd/config" from the tags of config.Config; do not edit. -->

Holdfast takes each setting from the first of these that has it:

1. the environment
2. the file that ` + "`HOLDFAST_CONFIG_FILE`" + ` names, whose form is that of systemd's ` + "`EnvironmentFile`" + `
3. the paths of ` + "`HOLDFAST_PARAMETERS`" + ` in AWS Systems Manager Parameter Store, in their order
4. its default

` + "`holdfast config`" + ` prints what is in force and where it comes from, without secrets.

- An unknown ` + "`HOLDFAST_*`" + ` name has no effect, and keeps nothing from starting: in a rolling upgrade
  processes of two versions have the same variables. Roles log it, commands warn of it,
  ` + "`holdfast config`" + ` and ` + "`holdfast doctor`" + ` show it with the setting that was perhaps meant.
- An empty value counts as not set.
- A process reads its settings once, when it starts. Commands that need only some of them ask Parameter
  Store only if the environment and the file lack one: to speak to a running Holdfast ` + "`HOLDFAST_URL`" + ` and
  ` + "`HOLDFAST_TOKEN`" + ` (none with ` + "`--dir`" + `), for ` + "`holdfast health`" + ` ` + "`HOLDFAST_LISTEN`" + ` or ` + "`HOLDFAST_URL`" + `.
- It reports all faults then, each with the remedy.

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
