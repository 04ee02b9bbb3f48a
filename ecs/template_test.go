package ecs_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/internal/cfntest"
	"github.com/holdfast/holdfast/registry"
)

// templates are both templates, by file.
func templates(t *testing.T) map[string]*cfntest.Template {
	t.Helper()
	return map[string]*cfntest.Template{"data.yaml": cfntest.Load(t, "data.yaml"), "services.yaml": cfntest.Load(t, "services.yaml")}
}

// values are parameters and imports for both templates, with what has no default. With everything, all
// conditions hold.
func values(everything bool) cfntest.Values {
	v := cfntest.Values{Parameters: map[string]any{
		"Vpc": "vpc-1", "PrivateSubnetA": "subnet-a", "PrivateSubnetB": "subnet-b", "PublicSubnetA": "subnet-c", "PublicSubnetB": "subnet-d",
		"StagingBucket": "staging", "StorageBucket": "storage", "Image": "holdfast:1", "Certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/1",
		"Naan": "12345", "TrustedProxies": "10.0.0.0/24,10.0.1.0/24",
	}, Imports: map[string]string{
		"StagingBucket": "staging", "StorageBucket": "storage", "DatabaseUrl": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:DatabaseUrl",
		"RedisUrl": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:RedisUrl",
	}}
	for _, name := range []string{"Vpc", "PrivateSubnetA", "PrivateSubnetB", "LoadBalancerSecurityGroup", "RegistrySecurityGroup", "WorkerSecurityGroup", "QueueSecurityGroup", "Disks", "RegistryLog", "WorkerLog", "QueueLog", "Alarms"} {
		v.Imports[name] = "imported-" + name
	}
	if everything {
		for _, name := range optional {
			v.Parameters[name] = "yes"
		}
		maps.Copy(v.Parameters, map[string]any{
			"SecondBucket": "second", "SecondRegion": "eu-west-1", "SourceObjects": "arn:aws:s3:::deposits/*",
			"AlarmMail": "ops@example.org", "RouteTables": "rtb-1", "DatabaseSnapshot": "arn:aws:rds:eu-central-1:123456789012:snapshot:1",
		})
	}
	return v
}

// TestTemplates_Schema: every resource has only properties that CloudFormation knows, with values of
// their types, and none is missing that it needs.
func TestTemplates_Schema(t *testing.T) {
	schema := cfntest.LoadSchema(t)
	for file, template := range templates(t) {
		for _, fault := range schema.Faults(template) {
			t.Errorf("%s: %s", file, fault)
		}
	}
}

// TestTemplates_Lint: cfn-lint of Python finds nothing. It knows more than the schema: patterns of
// texts, versions that AWS still offers. Where it is not installed, the test is skipped, also in CI: no
// package of Debian or npm has it.
func TestTemplates_Lint(t *testing.T) {
	if out, err := exec.Command("cfn-lint", "--version").CombinedOutput(); err != nil {
		t.Skipf("cfn-lint is absent: %v %s", err, out)
	}
	if out, err := exec.Command("cfn-lint", "--regions", "eu-central-1", "--", "data.yaml", "services.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTemplates_Names: what is referred to exists, attributes are those of the resource's type, and
// nothing is declared that nobody uses.
func TestTemplates_Names(t *testing.T) {
	schema := cfntest.LoadSchema(t)
	all := templates(t)
	for file, template := range all {
		references, imports := template.References()
		used := map[string]bool{}
		for _, r := range references {
			used[r.Name] = true
			_, isParameter := template.Parameters[r.Name]
			resource, isResource := template.Resources[r.Name]
			_, isCondition := template.Conditions[r.Name]
			switch {
			case r.Condition && isCondition, !r.Condition && strings.HasPrefix(r.Name, "AWS::"), !r.Condition && r.Attribute == "" && (isParameter || isResource):
			case isResource && schema.HasAttribute(resource.Type, r.Attribute):
			default:
				t.Errorf("%s: %s: nothing is called %s %s", file, r.Where, r.Name, r.Attribute)
			}
		}
		for name := range template.Parameters {
			if !used[name] {
				t.Errorf("%s: nobody uses the parameter %s", file, name)
			}
		}
		for name := range template.Conditions {
			if !used[name] {
				t.Errorf("%s: nobody uses the condition %s", file, name)
			}
		}
		exported := map[string]bool{}
		for _, output := range all["data.yaml"].Outputs {
			if export, ok := output["Export"].(map[string]any); ok {
				name := export["Name"].(map[string]any)["Fn::Sub"].(string)
				exported[strings.Replace(name, "${AWS::StackName}", "${Data}", 1)] = true
			}
		}
		for _, name := range imports {
			if !exported[name] {
				t.Errorf("%s imports %s, which data.yaml does not export", file, name)
			}
			delete(exported, name)
		}
		if len(exported) > 0 && file == "services.yaml" {
			t.Errorf("nobody imports %v", slices.Sorted(maps.Keys(exported)))
		}
	}
}

// TestTemplates_Resolve: all functions can be resolved, with and without what is optional.
func TestTemplates_Resolve(t *testing.T) {
	for file, template := range templates(t) {
		for _, everything := range []bool{false, true} {
			for id, r := range template.Resources {
				_, err := template.Resolved(id, values(everything))
				if err != nil && (everything || r.Condition == "") {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}

// TestTemplates_Limits: CloudFormation's limits. data.yaml can be given without a bucket; services.yaml
// is larger and goes through one.
func TestTemplates_Limits(t *testing.T) {
	most := map[string]int{"data.yaml": 51_200, "services.yaml": 1_000_000}
	identifier := regexp.MustCompile(`^[A-Za-z0-9]{1,255}$`)
	for file, template := range templates(t) {
		for what, n := range map[string][2]int{
			"bytes": {len(template.Text), most[file]}, "parameters": {len(template.Parameters), 200}, "resources": {len(template.Resources), 500},
			"outputs": {len(template.Outputs), 200}, "bytes of description": {len(template.Description), 1024},
		} {
			if n[0] > n[1] || n[0] == 0 {
				t.Errorf("%s has %d %s, want at most %d", file, n[0], what, n[1])
			}
			t.Logf("%s: %d %s of %d", file, n[0], what, n[1])
		}
		for name := range template.Resources {
			if !identifier.MatchString(name) {
				t.Errorf("%s: %s is no logical id", file, name)
			}
		}
		for name, p := range template.Parameters {
			if text := fmt.Sprint(p["Description"]); p["Description"] == nil || len(text) > 4000 || !identifier.MatchString(name) {
				t.Errorf("%s: parameter %s: description of %d bytes", file, name, len(text))
			}
			if d, ok := p["Default"].(string); ok && p["AllowedPattern"] != nil && !regexp.MustCompile("^(?:"+p["AllowedPattern"].(string)+")$").MatchString(d) {
				t.Errorf("%s: parameter %s does not allow its own default", file, name)
			}
		}
	}
}

// TestTemplates_Groups: the console shows each parameter once, below a heading.
func TestTemplates_Groups(t *testing.T) {
	for file, template := range templates(t) {
		var shown []string
		form := template.Metadata["AWS::CloudFormation::Interface"].(map[string]any)
		for _, group := range form["ParameterGroups"].([]any) {
			for _, name := range group.(map[string]any)["Parameters"].([]any) {
				shown = append(shown, name.(string))
			}
		}
		slices.Sort(shown)
		if want := slices.Sorted(maps.Keys(template.Parameters)); !slices.Equal(shown, want) {
			t.Errorf("%s shows %v, want %v", file, shown, want)
		}
	}
}

// TestReadme: its commands give each parameter that has no default, and none that is unknown.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	all := templates(t)
	word := regexp.MustCompile(`\b([A-Z]\w+)=`)
	given := map[string]map[string]bool{"data.yaml": {}, "services.yaml": {}}
	for block := range strings.SplitSeq(string(text), "\n```") {
		_, rest, ok := strings.Cut(block, "cloudformation deploy ")
		if !ok {
			continue
		}
		file := "data.yaml"
		if strings.Contains(rest, "ecs/services.yaml") {
			file = "services.yaml"
		}
		for _, m := range word.FindAllStringSubmatch(rest, -1) {
			given[file][m[1]] = true
			if all[file].Parameters[m[1]] == nil {
				t.Errorf("%s has no parameter %s", file, m[1])
			}
		}
	}
	for file, template := range all {
		for name, p := range template.Parameters {
			if p["Default"] == nil && !given[file][name] {
				t.Errorf("README.md does not give the parameter %s of %s", name, file)
			}
		}
	}
	decisions, err := os.ReadFile("../docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	// What both documents name in code spans, and looks like a parameter, is one.
	for _, m := range regexp.MustCompile("`((?:[A-Z][a-z]+){2,})(?:=\\w+)?`").FindAllStringSubmatch(string(text)+string(decisions), -1) {
		_, isOutput := all["data.yaml"].Outputs[m[1]]
		if all["data.yaml"].Parameters[m[1]] == nil && all["services.yaml"].Parameters[m[1]] == nil && !isOutput && !slices.Contains([]string{published.Backlog, published.Used, published.Needed, published.Workers}, m[1]) && !strings.HasPrefix(m[1], "Test") {
			t.Errorf("%s is no parameter", m[1])
		}
	}
}

// TestTokens runs the script with an aws and a holdfast that write down what they are asked: it makes a
// token for each stage that has none, and shows no secret on a command line.
func TestTokens(t *testing.T) {
	folder := t.TempDir()
	for name, script := range map[string]string{
		"aws": `#!/bin/sh
case "$*" in
*get-parameter*download*) exit 0 ;;
*get-parameter*) exit 255 ;;
esac
for word; do case $word in file://*) echo "$* $(cat "${word#file://}")" >>"$LOG" ;; esac; done
`,
		"holdfast": "#!/bin/sh\necho \"secret of $8\"; echo \"holdfast $*\" >>\"$LOG\"\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(folder, "log")
	cmd := exec.Command("sh", "tokens.sh")
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "LOG="+log, "TMPDIR="+folder)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range registry.Stages() {
		asked := regexp.MustCompile(fmt.Sprintf(`(?m)^holdfast token create --database --again --name worker-%[1]s --role worker --stage %[1]s$`, stage)).Match(text)
		kept := regexp.MustCompile(fmt.Sprintf(`(?m)^ssm put-parameter --type SecureString --name /holdfast/%s/TOKEN --value file://\S+ secret of worker$`, stage)).Match(text)
		if want := stage != registry.Download; asked != want || kept != want {
			t.Errorf("the token of %s is made: %t, and kept: %t; want %t\n%s", stage, asked, kept, want, text)
		}
	}
	if left, err := filepath.Glob(filepath.Join(folder, "tmp.*")); err != nil || len(left) > 0 {
		t.Errorf("%v stay, %v", left, err)
	}
	if strings.Contains(string(out), "secret") {
		t.Errorf("it shows a secret: %s", out)
	}
}

// TestReadme_Secrets: its table names every stage that has a secret, and no other.
func TestReadme_Secrets(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"SECRET_KEY", "RECEIPT_KEY", "EZID_URL", "SMTP_URL", "OIDC_CLIENT_SECRET"} {
		row := regexp.MustCompile(`(?m)^\| .*/` + name + `.*\|([^|]*)\|$`).FindSubmatch(text)
		if row == nil {
			t.Errorf("there is no row for %s", name)
			continue
		}
		for _, stage := range registry.Stages() {
			named := regexp.MustCompile(`\b` + string(stage) + `\b`).Match(row[1])
			if has := slices.Contains(config.Secrets("worker", stage), "HOLDFAST_"+name); has != named {
				t.Errorf("stage %s has %s: %t; its row says %s", stage, name, has, row[1])
			}
		}
		if has := slices.Contains(config.Secrets("registry"), "HOLDFAST_"+name); has != strings.Contains(string(row[1]), "Registry") {
			t.Errorf("the Registry has %s: %t; its row says %s", name, has, row[1])
		}
	}
}
