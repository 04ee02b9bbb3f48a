// Package docker_test checks that the container files fit the program: a service for every stage,
// under the names and limits that the program expects.
package docker_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/setup"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/interim/redis"
	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

//go:generate go test . -run ^TestGenerated -update

// TestGeneratedServices: each stage has a service with its own secrets and with the settings that its
// worker alone uses.
func TestGeneratedServices(t *testing.T) {
	var services strings.Builder
	for i, stage := range registry.Stages() {
		if i > 0 {
			services.WriteString("\n")
		}
		fmt.Fprintf(&services, "  %[1]s:\n    <<: *worker\n    command: [worker, %[1]s]\n", stage)
		fmt.Fprintf(&services, "    volumes: [*staging, *storage, {type: volume, source: secrets, target: /secrets, read_only: true, volume: {nocopy: true, subpath: %s}}]\n", stage)
		own := slices.DeleteFunc(config.StageSettings(stage), func(name string) bool { return slices.Contains(setup.Roles()[string(stage)], name) })
		if len(own) > 0 {
			services.WriteString("    environment:\n      <<: *worker-environment\n")
		}
		for _, name := range own {
			fmt.Fprintf(&services, "      %s: ${%[1]s:-}\n", name)
		}
	}
	generatedtest.Part(t, "docker/compose.yaml", "workers", services.String())
}

func TestEveryStageHasItsService(t *testing.T) {
	project := load(t)
	for _, stage := range registry.Stages() {
		service, err := project.GetService(string(stage))
		if err != nil {
			t.Errorf("stage %s has no service: %v", stage, err)
			continue
		}
		if want := []string{"worker", string(stage)}; !slices.Equal(service.Command, want) {
			t.Errorf("service %s runs %q, want %q", stage, service.Command, want)
		}
		for _, name := range []string{"CONFIG_FILE", "URL", "NSQLOOKUPD_ADDRS", "STAGING_URL", "STORAGE_URL", "MAX_ATTEMPTS"} {
			if value := service.Environment["HOLDFAST_"+name]; value == nil || *value == "" {
				t.Errorf("service %s has no HOLDFAST_%s", stage, name)
			}
		}
		for _, needed := range []string{"registry", "nsqd", "nsqlookupd", "redis"} {
			if service.DependsOn[needed].Condition != types.ServiceConditionHealthy {
				t.Errorf("service %s does not wait until %s is healthy", stage, needed)
			}
		}
	}
	for name, service := range project.Services {
		if len(service.Command) > 0 && service.Command[0] == "worker" && !slices.Contains(registry.Stages(), registry.Stage(name)) {
			t.Errorf("service %s is a worker of no stage", name)
		}
	}
}

// TestServicesHoldTheirSecretsAlone: each service gets the secrets of its role, and no others, in its
// environment or in its own folder of the volume.
func TestServicesHoldTheirSecretsAlone(t *testing.T) {
	all := config.AllSecrets()
	project := load(t)
	folder := makeKeys(t, project)
	for name, service := range project.Services.Filter(isOurs) {
		if service.Command[0] == "setup" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, subpath(t, service), setup.ConfigFile))
		if err != nil {
			t.Error(err)
		}
		stages := make([]registry.Stage, 0, len(service.Command)-1)
		for _, stage := range service.Command[1:] {
			stages = append(stages, registry.Stage(stage))
		}
		used := config.Secrets(service.Command[0], stages...)
		for _, secret := range all {
			_, has := service.Environment[secret]
			has = has || strings.Contains(string(text), "\n"+secret+"=")
			if has != slices.Contains(used, secret) {
				t.Errorf("service %s has %s: %t; its role uses %v", name, secret, has, used)
			}
		}
	}
	for name, service := range project.Services {
		whole := name == "keys" || name == "tokens"
		if below := subpath(t, service); whole != (below == "") && !strings.HasPrefix(name, "nsq") {
			t.Errorf("service %s has the folder %q of the volume", name, below)
		}
	}
}

// subpath returns the folder of the volume "secrets" that a service has, "" if it has all or nothing.
func subpath(t *testing.T, service types.ServiceConfig) string {
	t.Helper()
	for _, v := range service.Volumes {
		if v.Source != "secrets" || v.Volume == nil || v.Volume.Subpath == "" {
			continue
		}
		// Copying what the image has there would fail as long as the folder is missing.
		if v.Target != "/secrets" || !v.ReadOnly || !v.Volume.NoCopy {
			t.Errorf("service %s can write to its secrets, or the image could: %+v", service.Name, v)
		}
		return v.Volume.Subpath
	}
	return ""
}

// makeKeys runs the service keys, and returns the folder that stands for the volume.
func makeKeys(t *testing.T, project *types.Project) string {
	t.Helper()
	folder := t.TempDir()
	service := project.Services["keys"]
	t.Run("keys", func(t *testing.T) {
		for _, name := range []string{"HOLDFAST_DATABASE_URL", "HOLDFAST_REDIS_URL"} {
			t.Setenv(name, *service.Environment[name])
		}
		var out, errs strings.Builder
		a := cli.New("test", nil, &out, &errs)
		args := slices.Clone(service.Command)
		args[len(args)-1] = folder
		if code := a.Run(t.Context(), a.Root(setup.Command(a)), args); code != 0 {
			t.Fatalf("%v: %v\n%s", args, code, errs.String())
		}
	})
	return folder
}

func TestEveryServiceIsHealthChecked(t *testing.T) {
	project := load(t)
	for _, name := range []string{"registry", "nsqd", "nsqlookupd", "redis", "postgres"} {
		if _, err := project.GetService(name); err != nil {
			t.Errorf("%v", err)
		}
	}
	for name, service := range project.Services {
		if service.Restart == "no" { // it runs once and ends
			continue
		}
		if service.HealthCheck == nil || service.HealthCheck.Disable || len(service.HealthCheck.Test) == 0 {
			t.Errorf("service %s has no health check", name)
		}
	}
}

func TestOurServicesStopInTimeAndHoldNoPrivileges(t *testing.T) {
	for name, service := range load(t).Services.Filter(isOurs) {
		if service.Restart != "no" {
			grace, err := time.ParseDuration(*service.Environment["HOLDFAST_GRACE"])
			if err != nil {
				t.Errorf("service %s: %v", name, err)
			}
			if stop := time.Duration(*service.StopGracePeriod); stop < grace+10*time.Second {
				t.Errorf("service %s is killed after %v, want at least 10 s beyond its grace of %v", name, stop, grace)
			}
		}
		if !service.ReadOnly || !slices.Contains(service.CapDrop, "ALL") || service.Privileged {
			t.Errorf("service %s may do more than it needs", name)
		}
	}
}

// TestRolesStartWithWhatTheyAreTold: all settings are known and valid, and none is missing.
func TestRolesStartWithWhatTheyAreTold(t *testing.T) {
	project := load(t)
	folder := makeKeys(t, project)
	for name, service := range project.Services.Filter(isOurs) {
		if name == "keys" { // makeKeys has run it
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, secret := range config.AllSecrets() {
				t.Setenv(secret, "") // Load sets those of the file; this takes them away again
			}
			for variable, value := range service.Environment {
				t.Setenv(variable, *value)
			}
			t.Setenv("HOLDFAST_CONFIG_FILE", strings.Replace(*service.Environment["HOLDFAST_CONFIG_FILE"], "/secrets", filepath.Join(folder, subpath(t, service)), 1))
			c, err := config.Load(t.Context(), config.Default())
			if err != nil || len(c.Unknown) > 0 {
				t.Error(err, c.Unknown)
			}
			needs := map[string][]string{"registry": config.RegistryNeeds, "worker": config.WorkerNeeds, "migrate": {"DATABASE_URL"}, "setup": {"DATABASE_URL"}}
			if err := c.Require(service.Command[0], needs[service.Command[0]]...); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoSecretIsInTheFile: compose starts without any settings, and env.example and compose.yaml have
// no default for a secret. env.example has only what compose.yaml reads.
func TestNoSecretIsInTheFile(t *testing.T) {
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]string{} // defaults
	for _, m := range regexp.MustCompile(`\$\{(\w+):-([^}]*)\}`).FindAllStringSubmatch(string(text), -1) {
		read[m[1]] = m[2]
	}
	for _, secret := range config.AllSecrets() {
		// These are addresses, which setup completes.
		if u, err := url.Parse(read[secret]); err != nil || u.Host == "" && u.Scheme != "file" && read[secret] != "" || u.User.String() != u.User.Username() {
			t.Errorf("%s has a default, %q", secret, read[secret])
		}
	}
	if strings.Contains(string(text), ":?") {
		t.Error("compose.yaml does not start without a setting")
	}
	example, err := os.ReadFile("env.example")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(example)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if _, known := read[name]; ok && !strings.HasPrefix(line, "#") && (!known || value != "" && value != read[name]) {
			t.Errorf("env.example: %q is not what compose.yaml reads", line)
		}
	}
}

// TestImageHoldsTheBinaryAlone reads the Dockerfile: the last stage begins from scratch and runs as
// a numbered user other than root.
func TestImageHoldsTheBinaryAlone(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(text), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage is not FROM scratch")
	}
	for _, want := range []string{"\nUSER 65532:65532\n", "\nSTOPSIGNAL SIGTERM\n", `ENTRYPOINT ["/holdfast"]`, `CMD ["/holdfast", "health"]`} {
		if !strings.Contains(last, want) {
			t.Errorf("the last stage lacks %q", strings.TrimSpace(want))
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "ca-certificates.crt", "-X main.version="} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
}

// TestRedisAsksForItsPassword runs compose's command on a real redis-server: it requires the
// password, no command line shows it, the workers have it, and the health check succeeds only with
// it.
func TestRedisAsksForItsPassword(t *testing.T) {
	project := load(t)
	service := project.Services["redis"]
	if _, err := exec.LookPath("redis-server"); err != nil {
		proctest.Absent(t, "redis-server (apt-get install redis-server)", err)
	}
	secrets := makeKeys(t, project)
	mine := filepath.Join(secrets, subpath(t, service))
	line := slices.Clone([]string(service.Command))
	for i := range line {
		line[i] = strings.Replace(line[i], "/secrets", mine, 1)
	}
	var port string
	healthy := func(ctx context.Context, folder string) bool {
		check := strings.NewReplacer("redis-cli", "redis-cli -p "+port, "/secrets", folder, "$$", "$").Replace(service.HealthCheck.Test[1])
		return exec.CommandContext(ctx, "sh", "-c", check).Run() == nil
	}
	folder := t.TempDir()
	var server *proctest.Server
	err := proctest.OnFreePort(t, func(address string) (err error) {
		_, port, _ = net.SplitHostPort(address)
		cmd := exec.Command(line[0], append(slices.Clone(line[1:]), "--bind", "127.0.0.1", "--port", port, "--dir", folder)...)
		server, err = proctest.Start(cmd, func(ctx context.Context) bool { return healthy(ctx, mine) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.End(os.Kill) })
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "password"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if healthy(t.Context(), other) {
		t.Error("it is well with another password")
	}
	text, err := os.ReadFile(filepath.Join(secrets, "download", setup.ConfigFile))
	if err != nil {
		t.Fatal(err)
	}
	_, own, _ := strings.Cut(string(text), "HOLDFAST_REDIS_URL=")
	own, _, _ = strings.Cut(own, "\n")
	for address, works := range map[string]bool{own: true, "redis://redis:6379/0": false} {
		s, err := redis.Open(strings.Replace(address, "redis:6379", "127.0.0.1:"+port, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Put(t.Context(), interim.Attempt{ItemID: "item", N: 1}, map[string][]byte{"k": []byte("v")})
		if works != (err == nil) || !works && !strings.Contains(err.Error(), "NOAUTH") {
			t.Errorf("%s: %v, want that it works: %t", address, err, works)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if kept, err := os.ReadDir(filepath.Join(folder, "appendonlydir")); err != nil || len(kept) == 0 {
		t.Errorf("nothing is kept over a restart: %v, %v", kept, err)
	}
}

// TestPostgreSQL_DiesAnywhere runs compose's command on a real PostgreSQL whose first starts are killed:
// inside initdb, and when all is done but the last step. The next start completes the database. It asks
// for the password that setup made.
func TestPostgreSQL_DiesAnywhere(t *testing.T) {
	bin, err := postgrestest.Binaries()
	if errors.Is(err, exec.ErrNotFound) {
		proctest.Absent(t, "PostgreSQL (apt-get install postgresql)", err)
	}
	attr, uid, err2 := postgrestest.Owner()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	project := load(t)
	service := project.Services["postgres"]
	secrets := makeKeys(t, project)
	folder, err := os.MkdirTemp("", "holdfast-docker-") //nolint:usetesting // PostgreSQL's user cannot enter the test's own folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	password, err := os.ReadFile(filepath.Join(secrets, subpath(t, service), "password"))
	if err := errors.Join(err, os.WriteFile(filepath.Join(folder, "password"), password, 0o600), os.Mkdir(filepath.Join(folder, "data"), 0o700), os.Mkdir(filepath.Join(folder, "bin"), 0o700)); err != nil {
		t.Fatal(err)
	}
	dies := func(program, before string) (restore func()) {
		t.Helper()
		path := filepath.Join(folder, "bin", program)
		if err := errors.Join(os.WriteFile(path, []byte("#!/bin/sh\n"+before+"\nkill -KILL $PPID\n"), 0o755), os.Chown(path, uid, -1)); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		return func() { os.Remove(path) }
	}
	for _, name := range []string{"", "password", "data", "bin"} {
		if err := os.Chown(filepath.Join(folder, name), uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	start := func(args string) *exec.Cmd {
		script := strings.NewReplacer("/var/lib/postgresql/data", folder+"/data", "/secrets", folder).Replace(service.Command[0])
		cmd := exec.Command(service.Entrypoint[0], append(slices.Clone([]string(service.Entrypoint[1:])), strings.TrimSpace(script)+args)...)
		cmd.Env = []string{"PATH=" + folder + "/bin:" + bin + ":/usr/bin:/bin"}
		cmd.Dir, cmd.SysProcAttr = folder, attr
		return cmd
	}

	restore := dies("initdb", "mkdir "+folder+"/data/new && echo 15 > "+folder+"/data/new/PG_VERSION")
	if err := start("").Run(); err == nil {
		t.Fatal("it was not killed inside initdb")
	}
	restore()
	restore = dies("mv", "")
	if out, err := start("").CombinedOutput(); err == nil || !strings.Contains(string(out), "Success") {
		t.Fatalf("it was not killed when initdb had ended: %v\n%s", err, out)
	}
	restore()

	text, err := os.ReadFile(filepath.Join(secrets, "migrate", setup.ConfigFile))
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(strings.TrimSpace(string(text)), "HOLDFAST_DATABASE_URL=")
	connects := func(ctx context.Context, address string) error {
		db, err := sql.Open("pgx", address)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.PingContext(ctx)
	}
	var server *proctest.Server
	err = proctest.OnFreePort(t, func(free string) (err error) {
		_, port, _ := net.SplitHostPort(free)
		address = strings.Replace(address, "@postgres:5432/", "@"+free+"/", 1)
		server, err = proctest.Start(start(" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c port="+port),
			func(ctx context.Context) bool { return connects(ctx, address) == nil })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.End(os.Interrupt) })
	if err := connects(t.Context(), strings.Replace(address, strings.TrimSpace(string(password)), "another", 1)); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("with another password: %v", err)
	}
}

func load(t *testing.T) *types.Project {
	t.Helper()
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  ".",
		ConfigFiles: types.ToConfigFiles([]string{"compose.yaml"}),
		Environment: map[string]string{},
	})
	if err != nil {
		t.Fatalf("load compose.yaml: %v", err)
	}
	return project
}

func isOurs(service types.ServiceConfig) bool { return strings.HasPrefix(service.Image, "holdfast:") }
