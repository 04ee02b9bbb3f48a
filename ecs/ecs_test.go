// Package ecs_test checks that the task definitions fit ECS and the program: one for every stage,
// enough time to stop, and no secret in the files.
package ecs_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
)

// plain are the settings that may be in a file. All others are secrets or belong to Parameter
// Store.
var plain = strings.Fields(`HOLDFAST_LISTEN HOLDFAST_GRACE HOLDFAST_LOG_LEVEL HOLDFAST_STAGING_URL HOLDFAST_STORAGE_URL HOLDFAST_URL
	HOLDFAST_NSQD_ADDR HOLDFAST_NSQLOOKUPD_ADDRS HOLDFAST_NAAN HOLDFAST_CONCURRENCY HOLDFAST_LEASE HOLDFAST_TOPIC_PREFIX HOLDFAST_NET_ALLOW
	HOLDFAST_EZID_TARGET HOLDFAST_MAIL_FROM HOLDFAST_MAIL_URL HOLDFAST_MAIL_OPERATORS HOLDFAST_MAIL_DOMAINS HOLDFAST_CLAMD_ADDR HOLDFAST_SIEGFRIED_URL
	HOLDFAST_PER_HOST HOLDFAST_HOST_REQUESTS_PER_SECOND HOLDFAST_HOST_BYTES_PER_SECOND HOLDFAST_LEAST_RATE HOLDFAST_UNKNOWN_SIZE_BYTES
	HOLDFAST_ROOM_WAIT HOLDFAST_FIXITY_BYTES_PER_SECOND HOLDFAST_RESTORE_DAYS
	HOLDFAST_OIDC_ISSUER HOLDFAST_OIDC_CLIENT_ID HOLDFAST_OIDC_ROLES HOLDFAST_TRUSTED_PROXIES`)

// kept are the settings that are read from Parameter Store.
var kept = strings.Fields(`HOLDFAST_TOKEN HOLDFAST_REDIS_URL HOLDFAST_MAX_ATTEMPTS HOLDFAST_DATABASE_URL HOLDFAST_SECRET_KEY
	HOLDFAST_RECEIPT_KEY HOLDFAST_SMTP_URL HOLDFAST_EZID_URL HOLDFAST_OIDC_CLIENT_SECRET`)

// size is the size of a Fargate task: CPU units and MiB.
type size struct{ CPU, Memory string }

// larger are the stages whose workers need more than the smallest size, because they read, hash,
// unpack or copy many bytes.
var larger = map[registry.Stage]size{
	registry.Download: {"1024", "2048"}, registry.Process: {"1024", "2048"}, registry.Replicate: {"512", "1024"},
}

// values are the settings that do not come from the site's variables of the same names.
var values = map[string]string{
	"HOLDFAST_CLAMD_ADDR":       "clamd.holdfast.internal:3310",
	"HOLDFAST_GRACE":            "90s",
	"HOLDFAST_LISTEN":           "0.0.0.0:8080",
	"HOLDFAST_LOG_LEVEL":        "info",
	"HOLDFAST_NSQLOOKUPD_ADDRS": "nsqlookupd.holdfast.internal:4161",
	"HOLDFAST_STAGING_URL":      "s3://${HOLDFAST_STAGING_BUCKET}/staging?region=${AWS_REGION}",
	"HOLDFAST_STORAGE_URL":      "s3://${HOLDFAST_STORAGE_BUCKET}/storage?region=${AWS_REGION}",
	"HOLDFAST_URL":              "http://registry.holdfast.internal:8080",
}

//go:generate go test . -run ^TestGenerated -update

// TestGeneratedTasks: each stage has a task definition with the settings of all workers and of this
// stage.
func TestGeneratedTasks(t *testing.T) {
	form := template.Must(template.ParseFiles("worker.json.tmpl"))
	for _, stage := range registry.Stages() {
		task := struct {
			Stage       registry.Stage
			Size        size
			Environment []variable
			Secrets     []string
		}{Stage: stage, Size: cmp.Or(larger[stage], size{"256", "512"})}
		names := strings.Fields(`HOLDFAST_GRACE HOLDFAST_LISTEN HOLDFAST_LOG_LEVEL HOLDFAST_NAAN HOLDFAST_NSQLOOKUPD_ADDRS
			HOLDFAST_STAGING_URL HOLDFAST_STORAGE_URL HOLDFAST_URL`)
		for _, name := range config.StageSettings(stage) {
			if slices.Contains(config.AllSecrets(), name) {
				task.Secrets = append(task.Secrets, strings.TrimPrefix(name, "HOLDFAST_"))
			} else {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			task.Environment = append(task.Environment, variable{name, cmp.Or(values[name], "${"+name+"}")})
		}
		var text strings.Builder
		if err := form.Execute(&text, task); err != nil {
			t.Fatal(err)
		}
		generatedtest.File(t, "ecs/worker-"+string(stage)+".json", text.String())
	}
}

func TestEveryStageHasItsTask(t *testing.T) {
	tasks := load(t)
	want := []string{"registry.json"}
	for _, stage := range registry.Stages() {
		file := "worker-" + string(stage) + ".json"
		want = append(want, file)
		task, ok := tasks[file]
		if !ok {
			t.Errorf("stage %s has no %s", stage, file)
			continue
		}
		if task.Family != "holdfast-"+string(stage) || len(task.ContainerDefinitions) != 1 {
			t.Fatalf("%s: family %q with %d containers, want holdfast-%s with 1", file, task.Family, len(task.ContainerDefinitions), stage)
		}
		worker := task.ContainerDefinitions[0]
		if command := []string{"worker", string(stage)}; !slices.Equal(worker.Command, command) {
			t.Errorf("%s runs %q, want %q", file, worker.Command, command)
		}
		secrets := map[string]string{}
		for _, s := range worker.Secrets {
			secrets[s.Name] = s.ValueFrom
		}
		if !strings.HasSuffix(secrets["HOLDFAST_MAX_ATTEMPTS"], ":parameter/holdfast/"+string(stage)+"/MAX_ATTEMPTS") {
			t.Errorf("%s takes MAX_ATTEMPTS from %q, want the stage's own parameter", file, secrets["HOLDFAST_MAX_ATTEMPTS"])
		}
		if !strings.HasSuffix(secrets["HOLDFAST_TOKEN"], ":parameter/holdfast/"+string(stage)+"/TOKEN") {
			t.Errorf("%s takes its token from %q, want one of its own", file, secrets["HOLDFAST_TOKEN"])
		}
		plain := map[string]string{}
		for _, v := range worker.Environment {
			plain[v.Name] = v.Value
		}
		for _, needed := range []string{
			"HOLDFAST_URL", "HOLDFAST_REDIS_URL", "HOLDFAST_STAGING_URL", "HOLDFAST_STORAGE_URL", "HOLDFAST_NSQLOOKUPD_ADDRS",
		} {
			if secrets[needed] == "" && plain[needed] == "" {
				t.Errorf("%s has no %s, without which a worker does not start", file, needed)
			}
		}
		if !slices.Contains(task.Tags, tag{"capacity-provider", "FARGATE_SPOT"}) {
			t.Errorf("%s is not meant for Fargate Spot", file)
		}
	}
	for file := range tasks {
		if !slices.Contains(want, file) {
			t.Errorf("%s is the task of no stage", file)
		}
	}
}

// TestContainersHoldTheirSecretsAlone: each container gets the secrets of its role, and no others.
func TestContainersHoldTheirSecretsAlone(t *testing.T) {
	all := config.AllSecrets()
	for file, task := range load(t) {
		for _, c := range task.ContainerDefinitions {
			stages := make([]registry.Stage, 0, len(c.Command)-1)
			for _, stage := range c.Command[1:] {
				stages = append(stages, registry.Stage(stage))
			}
			used := config.Secrets(c.Command[0], stages...)
			for _, name := range all {
				// The addresses of buckets hold no secret here: the task's role opens them. nsqd
				// asks for none. A site with an OpenID provider adds its secret, as README.md says.
				if slices.Contains(plain, name) || name == "HOLDFAST_NSQ_AUTH_SECRET" || name == oidcSecret {
					continue
				}
				has := slices.ContainsFunc(c.Secrets, func(s secret) bool { return s.Name == name })
				if has != slices.Contains(used, name) {
					t.Errorf("%s: container %s has %s: %t; its role uses %v", file, c.Name, name, has, used)
				}
			}
		}
	}
}

// oidcSecret is needed only with an OpenID provider.
const oidcSecret = "HOLDFAST_OIDC_CLIENT_SECRET"

// TestRegistryIsToldWhatItUses: the Registry gets the NAAN of its first collection, and names no
// parameter that only workers or sites with an OpenID provider have: a task does not start while a
// named parameter is missing.
func TestRegistryIsToldWhatItUses(t *testing.T) {
	server := load(t)["registry.json"].ContainerDefinitions[1]
	if !slices.ContainsFunc(server.Environment, func(v variable) bool { return v.Name == "HOLDFAST_NAAN" && v.Value == "${HOLDFAST_NAAN}" }) {
		t.Error("the Registry has no HOLDFAST_NAAN, so that its first collection would have the NAAN for tests")
	}
	for _, s := range server.Secrets {
		if !slices.Contains(config.Secrets("registry"), s.Name) || s.Name == oidcSecret {
			t.Errorf("the Registry asks for %s, which it does not use", s.Name)
		}
	}
}

func TestRegistryMigratesFirst(t *testing.T) {
	task, ok := load(t)["registry.json"]
	if !ok || len(task.ContainerDefinitions) != 2 {
		t.Fatalf("registry.json has %d containers, want migrate and registry", len(task.ContainerDefinitions))
	}
	migrate, server := task.ContainerDefinitions[0], task.ContainerDefinitions[1]
	if migrate.Essential || !slices.Equal(migrate.Command, []string{"migrate"}) {
		t.Errorf("migrate runs %q, essential=%t, want a container that may end", migrate.Command, migrate.Essential)
	}
	if !server.Essential || !slices.Equal(server.Command, []string{"registry"}) {
		t.Errorf("the Registry runs %q, essential=%t", server.Command, server.Essential)
	}
	if !slices.Contains(server.DependsOn, dependency{"migrate", "SUCCESS"}) {
		t.Errorf("the Registry waits for %v, want the migration's success", server.DependsOn)
	}
}

func TestTasksFitFargate(t *testing.T) {
	// Fargate's smaller sizes: CPU units to MiB.
	sizes := map[string][]string{
		"256": {"512", "1024", "2048"}, "512": {"1024", "2048", "3072", "4096"},
		"1024": {"2048", "3072", "4096", "5120", "6144", "7168", "8192"},
	}
	for file, task := range load(t) {
		if !slices.Equal(task.RequiresCompatibilities, []string{"FARGATE"}) || task.NetworkMode != "awsvpc" {
			t.Errorf("%s: %v with network %s, want FARGATE with awsvpc", file, task.RequiresCompatibilities, task.NetworkMode)
		}
		if !slices.Contains(sizes[task.CPU], task.Memory) {
			t.Errorf("%s: Fargate has no size of %s CPU units and %s MiB", file, task.CPU, task.Memory)
		}
		for _, arn := range []string{task.TaskRoleArn, task.ExecutionRoleArn} {
			if !strings.HasPrefix(arn, "arn:aws:iam::${AWS_ACCOUNT_ID}:role/") {
				t.Errorf("%s: role %q", file, arn)
			}
		}
		if p := task.RuntimePlatform; p != (runtimePlatform{"X86_64", "LINUX"}) {
			t.Errorf("%s: platform %v", file, p)
		}
	}
}

func TestContainersStopInTimeAndAreWatched(t *testing.T) {
	for file, task := range load(t) {
		for _, c := range task.ContainerDefinitions {
			// 120 s is the most that Fargate allows, and what Spot gives before it takes the
			// machine.
			if c.StopTimeout > 120 {
				t.Errorf("%s: stopTimeout=%d, want at most 120", file, c.StopTimeout)
			}
			for _, v := range c.Environment {
				if v.Name != "HOLDFAST_GRACE" {
					continue
				}
				grace, err := time.ParseDuration(v.Value)
				if err != nil || time.Duration(c.StopTimeout)*time.Second < grace+10*time.Second {
					t.Errorf("%s: killed after %d s, want at least 10 s beyond its grace of %v (%v)", file, c.StopTimeout, grace, err)
				}
			}
			if c.Essential {
				if h := c.HealthCheck; h == nil || !slices.Equal(h.Command, []string{"CMD", "/holdfast", "health"}) || h.Timeout >= h.Interval {
					t.Errorf("%s: health check %v", file, h)
				}
				if !slices.ContainsFunc(c.Environment, func(v variable) bool { return v.Name == "HOLDFAST_GRACE" }) {
					t.Errorf("%s: container %s has no HOLDFAST_GRACE", file, c.Name)
				}
			}
			if c.LogConfiguration.LogDriver != "awslogs" || c.LogConfiguration.Options["awslogs-stream-prefix"] != c.Name {
				t.Errorf("%s: logs of %s go to %v", file, c.Name, c.LogConfiguration)
			}
			if !c.ReadonlyRootFilesystem || c.User != "65532:65532" || !slices.Equal(c.LinuxParameters.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("%s: container %s may do more than it needs", file, c.Name)
			}
			// The root is read-only, so that scratch files need a volume; the image's /tmp gives it
			// its owner.
			if !slices.Contains(c.MountPoints, mountPoint{"tmp", "/tmp", false}) || !slices.Contains(task.Volumes, volume{"tmp"}) {
				t.Errorf("%s: container %s has no /tmp to write to", file, c.Name)
			}
			if c.Image != "${HOLDFAST_IMAGE}" {
				t.Errorf("%s: image %q is not the site's", file, c.Image)
			}
		}
	}
}

func TestNoSecretIsWrittenDown(t *testing.T) {
	for file, task := range load(t) {
		for _, c := range task.ContainerDefinitions {
			for _, v := range c.Environment {
				if !slices.Contains(plain, v.Name) {
					t.Errorf("%s: %s stands in plain text, or is no setting", file, v.Name)
				}
				if strings.Contains(v.Value, "@") {
					t.Errorf("%s: %s looks like it holds credentials", file, v.Name)
				}
			}
			for _, s := range c.Secrets {
				if !slices.Contains(kept, s.Name) {
					t.Errorf("%s: %s is no setting that is kept secret", file, s.Name)
				}
				if !strings.HasPrefix(s.ValueFrom, "arn:aws:ssm:${AWS_REGION}:${AWS_ACCOUNT_ID}:parameter/holdfast/") {
					t.Errorf("%s: %s comes from %q, want Parameter Store", file, s.Name, s.ValueFrom)
				}
			}
		}
	}
}

// load decodes every task definition of this folder strictly, by file name.
func load(t *testing.T) map[string]taskDefinition {
	t.Helper()
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no task definitions: %v", err)
	}
	tasks := map[string]taskDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		var task taskDefinition
		if err := decoder.Decode(&task); err != nil {
			t.Fatalf("%s is no task definition: %v", file, err)
		}
		tasks[file] = task
	}
	return tasks
}
