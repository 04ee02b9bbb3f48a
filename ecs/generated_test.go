// Package ecs_test makes the parts of services.yaml that follow from the routes and the settings, and
// checks both templates: against CloudFormation's schema and limits, and against the program.
package ecs_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/holdfast/holdfast/bench/autoscale"
	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/periodic/cloudwatch"
	"github.com/holdfast/holdfast/registry"
)

//go:generate go test . -run ^TestGenerated -update

// metrics are the figures at CloudWatch that scaling and alarms read. The Registry sends all of them
// together, for each stage.
type metrics struct {
	Namespace string
	Backlog   string // seconds of work that wait for each slot of live workers
	Used      string // percent of these slots that are busy
	Needed    string // 1: the stage needs a worker
	Workers   string // live workers
	Dimension string // its value is the stage
}

var published = metrics{Namespace: "Holdfast", Backlog: cloudwatch.BacklogSeconds, Used: cloudwatch.SlotUtilization, Needed: cloudwatch.Needed, Workers: cloudwatch.LiveWorkers, Dimension: cloudwatch.Stage}

// Sizes of tasks, by the parameters' first word.
const (
	small      = "Small"
	medium     = "Medium"
	large      = "Large"
	ofRegistry = "Registry"
)

// service is what a stage's service has of its own.
type service struct {
	size     string
	most     int // workers, at first
	policies []string
}

// Policies of services.yaml.
const (
	openStores       = "!Ref OpenStores"
	readStaging      = "!Ref ReadStaging"
	writeStaging     = "!Ref WriteStaging"
	emptyStaging     = "!Ref EmptyStaging"
	readStorage      = "!Ref ReadStorage"
	writeStorage     = "!Ref WriteStorage"
	writeCheckpoints = "!Ref WriteCheckpoints"
	keepEvents       = "!Ref KeepEvents"
	restoreStorage   = "!Ref RestoreStorage"
	protectTasks     = "!Ref ProtectTasks"
	fetchSources     = "!If [HasSources, !Ref FetchSources, !Ref 'AWS::NoValue']"
)

// services says what each stage needs beside what all stages have. TestRoles_Permissions in e2e runs
// each stage with nothing else.
var services = map[registry.Stage]service{
	registry.Expand:    {small, 5, []string{readStaging, writeStaging}},
	registry.Report:    {small, 5, []string{emptyStaging}},
	registry.Estimate:  {small, 10, []string{readStaging, writeStaging}},
	registry.Provision: {small, 5, nil},
	registry.Download:  {large, 20, []string{readStaging, writeStaging}},
	registry.Scan:      {medium, 10, []string{readStaging, emptyStaging}},
	registry.Process:   {large, 20, []string{readStaging, writeStaging, readStorage, writeStorage}},
	registry.Replicate: {medium, 10, []string{readStorage, writeStorage}},
	registry.Record:    {small, 10, []string{readStaging, readStorage, writeStorage}},
	registry.Notify:    {small, 5, []string{emptyStaging}},
	registry.Apply:     {small, 2, nil},
	registry.Cleanup:   {small, 2, []string{emptyStaging, readStorage}},
	registry.Delete:    {small, 2, []string{readStorage, writeStorage}},
	registry.Fixity:    {medium, 10, []string{readStorage, writeStorage}},
	registry.Restore:   {medium, 5, []string{readStaging, writeStaging, readStorage, restoreStorage}},
	registry.Copy:      {medium, 5, []string{readStorage, writeStorage}},
	registry.Deliver:   {small, 5, nil},
}

// registryPolicies are those of the Registry. It takes uploads, hands out objects and writes
// checkpoints and events.
var registryPolicies = []string{openStores, readStaging, writeStaging, readStorage, writeCheckpoints, keepEvents}

// elsewhere are the settings that no parameter sets, and why.
var elsewhere = map[string]string{
	"HOLDFAST_TLS_CERT":        "the load balancer ends TLS",
	"HOLDFAST_TLS_KEY":         "the load balancer ends TLS",
	"HOLDFAST_ACME_HOSTS":      "the load balancer ends TLS",
	"HOLDFAST_ACME_EMAIL":      "the load balancer ends TLS",
	"HOLDFAST_ACME_DIRECTORY":  "the load balancer ends TLS",
	"HOLDFAST_ACME_CACHE":      "the load balancer ends TLS",
	"HOLDFAST_PLAIN_HTTP":      "the image says yes; security groups say who may connect",
	"HOLDFAST_CONFIG_FILE":     "the image has no files of yours",
	"HOLDFAST_PARAMETERS":      "ECS hands each task its secrets; no task's role reads Parameter Store, which has those of all",
	"HOLDFAST_CA_FILE":         "the Registry is asked without TLS, inside the VPC",
	"HOLDFAST_REDIS_CA_FILE":   "the authority of ElastiCache is in the image",
	"HOLDFAST_MAIL_TEMPLATES":  "the image has no files of yours; build one that has",
	"HOLDFAST_TEMP_DIR":        "the volume at /tmp",
	"HOLDFAST_NSQD_ADDR":       "the nsqds are found by nsqlookupd",
	"HOLDFAST_NSQ_AUTH_SECRET": "these nsqds ask for none",
}

// staging and storage are the addresses of both.
const (
	bucketOf   = `{Bucket: !ImportValue {'Fn::Sub': '${Data}-%sBucket'}}`
	stagingURL = `!Sub ['s3://${Bucket}/staging?region=${AWS::Region}', ` + bucketOf + `]`
	storageURL = `!If [HasSecond, !Sub ['s3://${Bucket}/storage?region=${AWS::Region} second=s3://${SecondBucket}/storage?region=${SecondRegion}', ` + bucketOf +
		`], !Sub ['s3://${Bucket}/storage?region=${AWS::Region}', ` + bucketOf + `]]`
)

// fixed are the settings whose values follow from the rest of services.yaml.
var fixed = map[string]string{
	"HOLDFAST_CLOUDWATCH":       published.Namespace,
	"HOLDFAST_ECS_CLUSTER":      "!Ref Cluster",
	"HOLDFAST_ECS_MOST":         mostOfStages(),
	"HOLDFAST_GRACE":            "90s", // stopTimeout is 120 s, the most that Fargate allows and what Spot gives
	"HOLDFAST_LISTEN":           "0.0.0.0:8080",
	"HOLDFAST_NSQLOOKUPD_ADDRS": "'nsqlookupd-1.holdfast.internal:4161,nsqlookupd-2.holdfast.internal:4161'",
	"HOLDFAST_STAGING_URL":      fmt.Sprintf(stagingURL, "Staging"),
	"HOLDFAST_STORAGE_URL":      fmt.Sprintf(storageURL, "Storage", "Storage"),
	"HOLDFAST_URL":              "http://registry.holdfast.internal:8080",
}

// mostOfStages is the value of HOLDFAST_ECS_MOST.
func mostOfStages() string {
	var all []string
	for _, stage := range registry.Stages() {
		all = append(all, fmt.Sprintf("%s=${%sMost}", stage, title(string(stage))))
	}
	return "!Sub '" + strings.Join(all, ",") + "'"
}

// required are the settings that an operator must give.
var required = []string{"HOLDFAST_NAAN", "HOLDFAST_TRUSTED_PROXIES"}

// optional are the secrets that not every installation has, and the conditions for them. A task does
// not start while a secret is missing that it names.
var optional = map[string]string{"HOLDFAST_EZID_URL": "WithEzid", "HOLDFAST_SMTP_URL": "WithMail", "HOLDFAST_OIDC_CLIENT_SECRET": "WithOidc"}

// made are the secrets that data.yaml makes, by the names of their exports.
var made = map[string]string{"HOLDFAST_DATABASE_URL": "DatabaseUrl", "HOLDFAST_REDIS_URL": "RedisUrl"}

// setting is an entry of a container's environment.
type setting struct{ Name, Value string }

// secret is an entry of a container's secrets. From is the ARN.
type secret struct{ Name, From, Condition string }

// reads is what an execution role may read from one service.
type reads struct {
	Action  string
	Secrets []secret
}

// perStage are what each stage has of its own in Parameter Store. MAX_ATTEMPTS is no secret, but
// operators change it there.
func perStage(stage registry.Stage) map[string]string {
	return map[string]string{
		"HOLDFAST_TOKEN":        parameter("${Path}/" + string(stage) + "/TOKEN"),
		"HOLDFAST_MAX_ATTEMPTS": parameter("${" + title(string(stage)) + "Tries}"),
	}
}

// split returns the environment and the secrets of a role.
func split(role string, stages ...registry.Stage) (environment []setting, secrets []secret) {
	own := map[string]string{}
	for _, stage := range stages {
		own = perStage(stage)
	}
	for _, s := range config.Declarations() {
		switch {
		case !s.UsedBy(role, stages...), elsewhere[s.Name] != "":
		case own[s.Name] != "":
			secrets = append(secrets, secret{Name: s.Name, From: own[s.Name]})
		case !s.Secret || fixed[s.Name] != "": // the addresses of buckets hold no secret here
			environment = append(environment, setting{s.Name, cmp.Or(fixed[s.Name], "!Ref "+camel(s.Name))})
		case made[s.Name] != "":
			secrets = append(secrets, secret{Name: s.Name, From: "!ImportValue {'Fn::Sub': '${Data}-" + made[s.Name] + "'}"})
		default:
			secrets = append(secrets, secret{Name: s.Name, From: parameter("${Path}/" + short(s.Name)), Condition: optional[s.Name]})
		}
	}
	return environment, secrets
}

// readsOf returns what an execution role must be allowed, to read secrets.
func readsOf(secrets []secret) []reads {
	store, manager := reads{Action: "ssm:GetParameters"}, reads{Action: "secretsmanager:GetSecretValue"}
	for _, s := range secrets {
		into := &store
		if strings.Contains(s.From, "ImportValue") {
			into = &manager
		}
		into.Secrets = append(into.Secrets, s)
	}
	return slices.DeleteFunc([]reads{store, manager}, func(r reads) bool { return r.Secrets == nil })
}

// parameter is the ARN of a parameter of Parameter Store, whose name begins with a slash.
func parameter(name string) string {
	return "!Sub 'arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter" + name + "'"
}

// short is a setting's name without the prefix.
func short(name string) string { return strings.TrimPrefix(name, config.Prefix+"_") }

// camel is the name of the parameter for a setting: RoomWait.
func camel(name string) (out string) {
	for word := range strings.SplitSeq(short(name), "_") {
		out += title(strings.ToLower(word))
	}
	return out
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// quoted is a YAML text.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// asParameters are the settings that have parameters, in the order of the settings.
func asParameters() []config.Declaration {
	return slices.DeleteFunc(config.Declarations(), func(s config.Declaration) bool {
		used := s.UsedBy("registry") || s.UsedBy("worker", registry.Stages()...)
		return !used || s.Secret || fixed[s.Name] != "" || elsewhere[s.Name] != "" || perStage(registry.Expand)[s.Name] != ""
	})
}

var inDocs = regexp.MustCompile(` \(docs/[^)]*\)|\[(\w+)\]\([^)]*\)`)

func TestGeneratedSettings(t *testing.T) {
	var parameters, groups, conditions strings.Builder
	group := func(label string, names []string) {
		fmt.Fprintf(&groups, "      - Label: {default: %s}\n        Parameters: [%s]\n", quoted(label), strings.Join(names, ", "))
	}
	var most, with []string
	for _, stage := range registry.Stages() {
		name := title(string(stage)) + "Most"
		most = append(most, name)
		fmt.Fprintf(&parameters, "  %s:\n    Type: Number\n    Default: %d\n    MinValue: 0\n    Description: The most workers of %s.\n", name, services[stage].most, stage)
	}
	group("The most workers of each stage", most)
	for _, s := range config.Declarations() {
		name := optional[s.Name]
		if name == "" {
			continue
		}
		with = append(with, name)
		fmt.Fprintf(&parameters, "  %s:\n    Type: String\n    Default: 'no'\n    AllowedValues: ['yes', 'no']\n    Description: Whether %s is in Parameter Store.\n", name, s.Name)
		fmt.Fprintf(&conditions, "  %s: !Equals [!Ref %[1]s, 'yes']\n", name)
	}
	group("Secrets that you have in Parameter Store", with)
	var names []string
	all := asParameters()
	for i, s := range all {
		name := camel(s.Name)
		fmt.Fprintf(&parameters, "  %s:\n    Type: String\n", name)
		if !slices.Contains(required, s.Name) {
			parameters.WriteString("    Default: ''\n")
		}
		text := inDocs.ReplaceAllString(s.Does+" Value: "+s.Want+".", "$1")
		if s.Otherwise != "" {
			text += " Otherwise: " + inDocs.ReplaceAllString(s.Otherwise, "$1") + "."
		}
		fmt.Fprintf(&parameters, "    Description: %s\n", quoted(text))
		names = append(names, name)
		if i+1 == len(all) || all[i+1].Subject != s.Subject {
			group("Settings: "+s.Subject, names)
			names = nil
		}
	}
	generatedtest.Part(t, "ecs/services.yaml", "groups", groups.String())
	generatedtest.Part(t, "ecs/services.yaml", "settings", parameters.String())
	generatedtest.Part(t, "ecs/services.yaml", "conditions", conditions.String())
	generatedtest.Part(t, "ecs/tokens.sh", "stages", "stages='"+strings.Join(stageNames(), " ")+"'\n")
}

func stageNames() (names []string) {
	for _, stage := range registry.Stages() {
		names = append(names, string(stage))
	}
	return names
}

func TestGeneratedServices(t *testing.T) {
	form := template.Must(template.ParseGlob("*.yaml.tmpl"))
	made := func(name string, data any) string {
		var text strings.Builder
		if err := form.ExecuteTemplate(&text, name, data); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	tries := ""
	for _, s := range config.Declarations() {
		if s.Name == "HOLDFAST_MAX_ATTEMPTS" {
			tries = s.Otherwise
		}
	}
	var stages []string
	for _, stage := range registry.Stages() {
		own, ok := services[stage]
		if !ok {
			t.Fatalf("services has no %s: say which buckets its worker uses", stage)
		}
		policies := append([]string{openStores, protectTasks}, own.policies...)
		if step, _ := registry.StepOf(stage); step.Fetches != registry.NoSource {
			policies = append(policies, fetchSources)
		}
		environment, secrets := split("worker", stage)
		stages = append(stages, made("stage.yaml.tmpl", map[string]any{
			"Stage": stage, "ID": title(string(stage)), "Tries": tries, "Size": own.size, "Policies": policies,
			"Environment": environment, "Secrets": secrets, "Reads": readsOf(secrets), "Metrics": published, "Policy": autoscale.Deployed(),
		}))
	}
	generatedtest.Part(t, "ecs/services.yaml", "stages", strings.Join(stages, "\n"))

	environment, secrets := split("registry")
	migrated, migrates := split("migrate")
	generatedtest.Part(t, "ecs/services.yaml", "registry", made("registry.yaml.tmpl", map[string]any{
		"Size": ofRegistry, "Policies": registryPolicies, "Environment": environment, "Secrets": secrets, "Migrated": migrated, "Migrate": migrates, "Reads": readsOf(secrets),
		"Metrics": published, "First": registry.Stages()[0], "Stages": registry.Stages(),
	}))
	generatedtest.Part(t, "ecs/services.yaml", "queue", made("queue.yaml.tmpl", map[string]any{
		"Size": small, "Numbers": []int{1, 2}, "Lookups": []string{"", "Nsqlookupd1", "Nsqlookupd2"}, "Nsqds": []string{"", "Nsqd1", "Nsqd2"},
	}))
}
