package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/config/configtest"
)

// clear makes the settings that a source fills empty, so that the end of the test empties them again.
func clear(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(config.Prefix+"_"+name, "")
	}
}

func configFile(t *testing.T, lines ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.env")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_CONFIG_FILE", path)
}

// The environment comes before the file, the file before the parameters, and a path before the next.
func TestLoad_Order(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_NAAN": "1", "HOLDFAST_PARAMETERS": "/holdfast/download, /holdfast"})
	clear(t, "PER_HOST", "GRACE", "TOKEN", "MAIL_FROM", "LEAST_RATE", "UPLOAD_DAYS", "DOWNLOAD_MAX_ATTEMPTS")
	configFile(t, "# of this server", "", "HOLDFAST_NAAN=2", ` HOLDFAST_GRACE = "1m" `, "HOLDFAST_DOWNLOAD_MAX_ATTEMPTS=7", "HOLDFAST_MAIL_FROM='a#b=c@example.org'")
	configtest.ParameterStore(t,
		[2]string{"/holdfast/NAAN", "3"}, [2]string{"/holdfast/GRACE", "3s"}, [2]string{"/holdfast/PER_HOST", "3"},
		[2]string{"/holdfast/LEAST_RATE", "1KiB"}, [2]string{"/holdfast/UPLOAD_DAYS", "9"}, [2]string{"/holdfast/notify/TOKEN", "of another"},
		[2]string{"/holdfast/download/TOKEN", "hf_secret"}, [2]string{"/holdfast/download/PER_HOST", "4"},
	)
	settings, _, err := config.InForce(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	file := os.Getenv("HOLDFAST_CONFIG_FILE")
	got := map[string][2]string{}
	for _, s := range settings {
		if s.From != config.FromDefault {
			got[strings.TrimPrefix(s.Name, "HOLDFAST_")] = [2]string{s.Value, s.From}
		}
	}
	want := map[string][2]string{
		"CONFIG_FILE":           {file, "environment"},
		"PARAMETERS":            {"/holdfast/download, /holdfast", "environment"},
		"NAAN":                  {"1", "environment"},
		"GRACE":                 {"1m", file + ", line 4"},
		"DOWNLOAD_MAX_ATTEMPTS": {"7", file + ", line 5"},
		"MAIL_FROM":             {"a#b=c@example.org", file + ", line 6"},
		"PER_HOST":              {"4", "parameter /holdfast/download/PER_HOST"},
		"LEAST_RATE":            {"1KiB", "parameter /holdfast/LEAST_RATE"},
		"UPLOAD_DAYS":           {"9", "parameter /holdfast/UPLOAD_DAYS"},
		"TOKEN":                 {"", "parameter /holdfast/download/TOKEN"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	c, err := config.Load(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	if c.NAAN != "1" || c.PerHost != 4 || c.Token != "hf_secret" || c.Stages["download"].MaxAttempts != 7 {
		t.Errorf("loaded %+v", c)
	}
}

// Every fault of the sources is reported at once, with its place, and quotes no value of a secret.
func TestLoad_SourceFaults(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_PARAMETERS": "/holdfast,/closed,relative"})
	clear(t, "GRACE", "PER_HOTS", "SECRET_KEY", "NAME")
	configFile(t, "HOLDFAST_GRACE=soon", "GRACE=1s", "HOLDFAST_CONFIG_FILE=other", "hunter2", "HOLDFAST_GRACE=1s", "HOLDFAST_SECRET_KEY=hunter3")
	configtest.ParameterStore(t, [2]string{"/holdfast/PER_HOTS", "hunter4"})
	file := os.Getenv("HOLDFAST_CONFIG_FILE")
	c, err := config.Load(t.Context(), config.Default())
	if err == nil {
		t.Fatal("no error")
	}
	if len(c.Unknown) != 1 || !strings.HasPrefix(c.Unknown[0].String(), "parameter /holdfast/PER_HOTS: HOLDFAST_PER_HOTS: unknown") {
		t.Errorf("unknown: %v", c.Unknown)
	}
	for _, want := range []string{
		file + `, line 1: HOLDFAST_GRACE: found "soon"; expected a duration`,
		file + ", line 2: GRACE: a configuration file has names that begin with HOLDFAST_ or AWS_",
		file + ", line 3: a configuration file cannot name another one",
		file + ", line 4: not of the form NAME=VALUE",
		file + ", line 5: HOLDFAST_GRACE is in line 1, too",
		file + ", line 6: HOLDFAST_SECRET_KEY: found 7 characters",
		"HOLDFAST_PARAMETERS: read the parameters below /closed: ", "AccessDeniedException",
		"HOLDFAST_PARAMETERS: read the parameters below relative: a path begins with /",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter") {
		t.Errorf("a secret in\n%v", err)
	}
}

func TestLoad_NoFile(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_CONFIG_FILE": filepath.Join(t.TempDir(), "absent.env")})
	if _, err := config.Load(t.Context(), config.Default()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_CONFIG_FILE: open ") {
		t.Errorf("error %v", err)
	}
}

// A stage uses its own settings, those of all workers, and no others.
func TestInForce_UsedBy(t *testing.T) {
	set(t, nil)
	settings, _, err := config.InForce(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]string{}
	for _, s := range settings {
		for _, role := range []string{"registry", "download", "deliver"} {
			if s.UsedBy(role) {
				uses[strings.TrimPrefix(s.Name, "HOLDFAST_")] += role + " "
			}
		}
	}
	for name, want := range map[string]string{"DATABASE_URL": "registry ", "REDIS_URL": "download deliver ", "PER_HOST": "download ", "SMTP_URL": "deliver ", "NAAN": "registry download deliver "} {
		if uses[name] != want {
			t.Errorf("%s is used by %q, want %q", name, uses[name], want)
		}
	}
}

// A command asks Parameter Store only if the environment and the file lack a setting that it needs.
func TestLoadFor(t *testing.T) {
	for name, tt := range map[string]struct {
		has, needs []string
		want       int64
	}{
		"none is needed":     {nil, nil, 0},
		"all are there":      {[]string{"URL", "TOKEN"}, config.ClientNeeds, 0},
		"one is not":         {[]string{"URL"}, config.ClientNeeds, 1},
		"any suffices":       {[]string{"URL"}, config.HealthNeeds, 0},
		"neither is there":   {[]string{"TOKEN"}, config.HealthNeeds, 1},
		"in the file":        {[]string{"URL", "file"}, config.ClientNeeds, 0},
		"another is missing": {[]string{"URL", "TOKEN"}, config.DatabaseNeeds, 1},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, map[string]string{"HOLDFAST_PARAMETERS": "/holdfast"})
			clear(t, "URL", "TOKEN", "NAAN")
			for _, has := range tt.has {
				if has == "file" {
					configFile(t, "HOLDFAST_TOKEN=of the file")
				} else {
					t.Setenv(config.Prefix+"_"+has, "http://127.0.0.1:1")
				}
			}
			store := configtest.ParameterStore(t, [2]string{"/holdfast/NAAN", "12345"})
			c, err := config.LoadFor(t.Context(), config.Default(), tt.needs...)
			if err != nil {
				t.Fatal(err)
			}
			if store.Requests() != tt.want || (c.NAAN == "12345") != (tt.want > 0) {
				t.Errorf("%d requests, want %d; NAAN %s", store.Requests(), tt.want, c.NAAN)
			}
		})
	}
}

// No value that is shown has a secret or the password of an address, whatever setting it is in.
func TestInForce_HidesSecrets(t *testing.T) {
	set(t, nil)
	for _, s := range config.Declarations() {
		t.Run(s.Name, func(t *testing.T) {
			for _, value := range []string{"hunter2-hunter2-hunter2-hunter2-hunter2", "https://ann:hunter2@example.org/x?a=b&password=hunter2"} {
				if !s.Secret && !strings.Contains(value, "://") || strings.HasSuffix(s.Name, "CONFIG_FILE") || strings.HasSuffix(s.Name, "PARAMETERS") {
					continue // these are no addresses, and name the sources
				}
				t.Setenv(s.Name, value)
				settings, _, err := config.InForce(t.Context(), config.Default())
				for _, shown := range settings {
					if strings.Contains(shown.Value, "hunter2") {
						t.Errorf("%s is shown as %s", shown.Name, shown.Value)
					}
				}
				if err != nil && strings.Contains(err.Error(), "hunter2") {
					t.Errorf("its fault is %v", err)
				}
			}
		})
	}
}
