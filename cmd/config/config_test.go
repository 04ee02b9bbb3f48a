package config_test

import (
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/registry"
)

// set replaces our variables in the environment.
func set(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, config.Prefix+"_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}

func TestLoad_EmptyIsDefault(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_NAAN": "", "HOLDFAST_LEASE": "", "HOLDFAST_NO_SUCH": ""})
	got, err := config.Load(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Stages = map[registry.Stage]config.Policy{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.StagingFull.Share() != 0.8 || got.StagingFullUnestimated.Share() != 0.7 {
		t.Errorf("staging full at %v and %v, want 0.8 and 0.7", got.StagingFull.Share(), got.StagingFullUnestimated.Share())
	}
	template, err := got.Template()
	if err != nil || template.NAAN != "99999" {
		t.Errorf("template %v, %v; want NAAN 99999", template, err)
	}
}

func TestLoad_Values(t *testing.T) {
	set(t, map[string]string{
		"HOLDFAST_URL": "https://registry.example:8443", "HOLDFAST_TOKEN": "hf_secret", "HOLDFAST_LOG_LEVEL": "debug",
		"HOLDFAST_NET_ALLOW": "10.0.0.0/8, 127.0.0.1", "HOLDFAST_STAGING_FULL": "92.5%", "HOLDFAST_NAAN": "13030",
		"HOLDFAST_PER_HOST": "4", "HOLDFAST_UPLOAD_DAYS": "30", "HOLDFAST_HOST_REQUESTS_PER_SECOND": "0.5", "HOLDFAST_HOST_BYTES_PER_SECOND": "10 MiB",
		"HOLDFAST_NSQLOOKUPD_ADDRS": "a:4161,b:4161", "HOLDFAST_GRACE": "1m30s", "HOLDFAST_DATABASE_URL": "sqlite:/data/r.db",
	})
	c, err := config.Load(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32")},
		[]netip.Prefix(c.NetAllow), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("net allow (-want +got):\n%s", diff)
	}
	if c.LogLevel != slog.LevelDebug || c.StagingFull != 92.5 || time.Duration(c.Grace) != 90*time.Second || len(c.NSQLookupdAddrs) != 2 {
		t.Errorf("read as %+v", c)
	}
	if c.UploadDays != 30 || config.Default().UploadDays != 7 {
		t.Errorf("days of uploads read as %v, and %v by default; want 30 and 7", c.UploadDays, config.Default().UploadDays)
	}
	if c.PerHost != 4 || c.HostRequests != 0.5 || c.HostBytes != 10<<20 {
		t.Errorf("limits by host read as %v, %v, %v", c.PerHost, c.HostRequests, c.HostBytes)
	}
	if template, err := c.Template(); err != nil || template.NAAN != "13030" {
		t.Errorf("template %v, %v; want NAAN 13030", template, err)
	}
}

func TestWorker_StageWins(t *testing.T) {
	set(t, map[string]string{
		"HOLDFAST_MAX_ATTEMPTS": "7", "HOLDFAST_DOWNLOAD_MAX_ATTEMPTS": "3", "HOLDFAST_DOWNLOAD_CONCURRENCY": "9",
		"HOLDFAST_LEASE": "20s", "HOLDFAST_RECORD_LEASE": "5s", "HOLDFAST_ROOM_WAIT": "36h",
	})
	c, err := config.Load(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	for stage, want := range map[registry.Stage]base.Worker{
		registry.Download: {Attempts: 3, Slots: 9, LeaseFor: 20 * time.Second, RoomFor: 36 * time.Hour},
		registry.Record:   {Attempts: 7, LeaseFor: 5 * time.Second, RoomFor: 36 * time.Hour},
		registry.Expand:   {Attempts: 7, LeaseFor: 20 * time.Second, RoomFor: 36 * time.Hour},
	} {
		if got := c.Worker(stage); got != want {
			t.Errorf("%s: policy %+v, want %+v", stage, got, want)
		}
	}
}

func TestLoad_AllFaultsAtOnce(t *testing.T) {
	bad := map[string]string{
		"HOLDFAST_UNPACK_ENTRIES":           "0",
		"HOLDFAST_UNPACK_BYTES":             "4 TB",
		"HOLDFAST_UNPACK_RATIO":             "-1",
		"HOLDFAST_UNPACK_WINDOW":            "64 MB",
		"HOLDFAST_JUDGE_MEMORY":             "1KiB",
		"HOLDFAST_UNPACK_MEMORY":            "1KiB",
		"HOLDFAST_TEMP_DIR":                 "/nowhere/at/all",
		"HOLDFAST_MAX_ATTEMPTS":             "0",
		"HOLDFAST_DOWNLOAD_LEASE":           "soon",
		"HOLDFAST_PROCESS_LEASE":            "25h",
		"HOLDFAST_STAGING_FULL":             "NaN",
		"HOLDFAST_LISTEN":                   "8080",
		"HOLDFAST_URL":                      "registry:8080",
		"HOLDFAST_LOG_LEVEL":                "loud",
		"HOLDFAST_NET_ALLOW":                "10.0.0.0/8,localhost",
		"HOLDFAST_DATABASE_URL":             "mysql://root:hunter2@db/x",
		"HOLDFAST_STAGING_URL":              "s4://bucket",
		"HOLDFAST_NOID_TEMPLATE":            "fk4{.seeeek}",
		"HOLDFAST_NAAN":                     "not a naan",
		"HOLDFAST_TOPIC_PREFIX":             "a b",
		"HOLDFAST_PER_HOST":                 "0",
		"HOLDFAST_UPLOAD_DAYS":              "0",
		"HOLDFAST_HOST_REQUESTS_PER_SECOND": "often",
		"HOLDFAST_HOST_BYTES_PER_SECOND":    "1MB",
		"HOLDFAST_SECRET_KEY":               "hunter2",
		"HOLDFAST_RECEIPT_KEY":              "hunter2",
		"HOLDFAST_ECS_MOST":                 "download",
	}
	set(t, bad)
	_, err := config.Load(t.Context(), config.Default())
	if err == nil {
		t.Fatal("a wrong environment was accepted")
	}
	var fault *config.Fault
	if !errors.As(err, &fault) {
		t.Errorf("errors are of the types %T, want *Fault among them", err)
	}
	lines := strings.Split(err.Error(), "\n")
	for name, value := range bad {
		if name == "HOLDFAST_NAAN" {
			continue // it is judged with the template, which is wrong
		}
		i := 0
		for i < len(lines) && !strings.HasPrefix(lines[i], name+": ") {
			i++
		}
		if i == len(lines) {
			t.Errorf("%s=%s is not among the faults:\n%s", name, value, err)
			continue
		}
		if !strings.Contains(lines[i], "; expected ") {
			t.Errorf("%q does not say what is expected", lines[i])
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password is repeated:\n%s", err)
	}
}

// TestLoad_Unknown: names of another version, and misspelt ones, keep no process from starting. They
// are told, with the setting that was perhaps meant and without their values.
func TestLoad_Unknown(t *testing.T) {
	set(t, map[string]string{
		"HOLDFAST_DOWNLOAD_MAX_ATEMPTS": "5", "HOLDFAST_NSQ_AUTH_SECERT": "hunter2", "HOLDFAST_OF_A_LATER_VERSION": "x", "HOLDFAST_FOO": "x", "HOLDFAST_EMPTY": "",
		"HOLDFAST_LEASES": "3s", "HOLDFAST_LEASE": "3s",
	})
	settings, c, err := config.InForce(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, u := range c.Unknown {
		got[u.Name] = u.Close
		if u.Name == "HOLDFAST_LEASES" && (u.Misspelt() || !strings.Contains(u.String(), "HOLDFAST_LEASE, which it resembles, is set")) {
			t.Error(u)
		}
		if text := u.String(); u.Misspelt() != strings.Contains(text, "did you mean "+u.Close+"?") || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", u.Name, text)
		}
	}
	want := map[string]string{
		"HOLDFAST_DOWNLOAD_MAX_ATEMPTS": "HOLDFAST_DOWNLOAD_MAX_ATTEMPTS", "HOLDFAST_NSQ_AUTH_SECERT": "HOLDFAST_NSQ_AUTH_SECRET", "HOLDFAST_OF_A_LATER_VERSION": "", "HOLDFAST_FOO": "",
		"HOLDFAST_LEASES": "HOLDFAST_LEASE", // which is set, too
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown names (-want +got):\n%s", diff)
	}
	for _, s := range settings[len(settings)-len(want):] {
		if _, ok := want[s.Name]; !ok || !s.Unknown || s.Value != "" || !s.UsedBy("download") {
			t.Errorf("shown as %+v", s)
		}
	}
}

func TestLoad_EveryNameOfTheDesign(t *testing.T) {
	names := map[string]string{
		"DATABASE_URL": "postgres://u:p@db/holdfast", "NSQD_ADDR": "nsqd:4150", "NSQLOOKUPD_ADDRS": "l:4161", "REDIS_URL": "rediss://:p@r:6379/0",
		"STAGING_URL": "file:///data/staging", "STORAGE_URL": "s3://b/p?region=r", "URL": "http://r:8080", "TOKEN": "t", "NET_ALLOW": "::1",
		"MAX_ATTEMPTS": "5", "CONCURRENCY": "2", "LEASE": "30s", "GRACE": "90s", "LISTEN": "0.0.0.0:8080", "SMTP_URL": "smtp://m:25", "MAIL_FROM": "Holdfast <h@example.org>",
		"MAIL_URL": "https://h.example.org/", "MAIL_OPERATORS": "a@example.org, b@example.org", "MAIL_DIGEST": "06:30", "MAIL_DOMAINS": "example.org, *.example.edu", "MAIL_TOKEN_DAILY": "0",
		"EZID_URL": "https://user:p%40ss@ezid.cdlib.org", "EZID_TARGET": "https://example.org/m/{ark}", "NAAN": "99999", "NOID_TEMPLATE": "fk4{.reek}", "SECRET_KEY": "0123456789abcdef0123456789abcdef", "RECEIPT_KEY": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
		"STAGING_FULL": "80", "STAGING_FULL_UNESTIMATED": "70", "TOPIC_PREFIX": "test-", "CLAMD_ADDR": "clamd:3310",
		"SIEGFRIED_URL": "http://sf:5138", "LOG_LEVEL": "warn", "UNPACK_ENTRIES": "10", "UNPACK_BYTES": "4TiB", "UNPACK_RATIO": "50", "UNPACK_WINDOW": "8MiB", "JUDGE_MEMORY": "1GiB", "UNPACK_MEMORY": "1GiB", "TEMP_DIR": ".", "PER_HOST": "4", "HOST_REQUESTS_PER_SECOND": "0.5", "HOST_BYTES_PER_SECOND": "10MiB",
		"LEAST_RATE": "0", "UNKNOWN_SIZE_BYTES": "1TiB", "NSQ_AUTH_SECRET": "0123456789abcdef",
	}
	vars := map[string]string{}
	for name, value := range names {
		vars["HOLDFAST_"+name] = value
	}
	set(t, vars)
	if _, err := config.Load(t.Context(), config.Default()); err != nil {
		t.Error(err)
	}
}

func TestBytesAndRates(t *testing.T) {
	for text, want := range map[string]config.Bytes{"65536": 65536, " 64 KiB": 65536, "1MiB": 1 << 20, "2GiB": 2 << 30, "1024GiB": 1 << 40, "4TiB": 4 << 40, "1025GiB": 1025 << 30} {
		var got config.Bytes
		if err := got.Decode(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "65535", "1KiB", "1.5MiB", "1MB", "MiB", "99999999999999999999", "9223372036854775807KiB", "9000000TiB"} {
		var got config.Bytes
		if err := got.Decode(text); err == nil {
			t.Errorf("%q is taken for %d bytes", text, got)
		}
	}
	for _, text := range []string{"", "0", "-1", "NaN", "Inf", "often", "1e7"} {
		var got config.Rate
		if err := got.Decode(text); err == nil {
			t.Errorf("%q is taken for a rate of %v", text, got)
		}
	}
}

func TestWorkers(t *testing.T) {
	for text, want := range map[string]config.Workers{"scan=0": {registry.Scan: 0}, "download=20, newer = 5": {registry.Download: 20, "newer": 5}} {
		var got config.Workers
		if err := got.Decode(text); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "scan", "scan=", "=1", "scan=-1", "scan=1,", "scan=1 download=2"} {
		var got config.Workers
		if err := got.Decode(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// TestLoad_FirstWorkers: who has first workers started publishes figures for the rest of the scaling.
func TestLoad_FirstWorkers(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_ECS_CLUSTER": "archive"})
	if _, err := config.Load(t.Context(), config.Default()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_CLOUDWATCH") {
		t.Errorf("without figures: %v", err)
	}
	set(t, map[string]string{"HOLDFAST_ECS_CLUSTER": "archive", "HOLDFAST_CLOUDWATCH": "Archive", "HOLDFAST_ECS_MOST": "scan=0"})
	if c, err := config.Load(t.Context(), config.Default()); err != nil || c.ECSCluster != "archive" || c.ECSMost[registry.Scan] != 0 || len(c.ECSMost) != 1 {
		t.Errorf("read as %q and %v, %v", c.ECSCluster, c.ECSMost, err)
	}
}

func TestRhythm(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]config.Rhythm{
		"06:30": {day, 6*time.Hour + 30*time.Minute}, " 00:00": {day, 0}, "12h": {12 * time.Hour, 0}, "1m": {time.Minute, 0},
	} {
		var got config.Rhythm
		if err := got.Decode(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "24:00", "6", "59s", "-1h", "daily"} {
		var got config.Rhythm
		if err := got.Decode(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// TestLoad_Mail: all faults of mail settings are reported at the start, without passwords.
func TestLoad_Mail(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "report.txt"), []byte("{{.Nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		vars  map[string]string
		wants []string
	}{
		"no sender":        {map[string]string{"SMTP_URL": "smtp://ann:hunter2@m"}, []string{"HOLDFAST_MAIL_FROM"}},
		"digest of nobody": {map[string]string{"MAIL_OPERATORS": "ops@example.org"}, []string{"HOLDFAST_MAIL_FROM"}},
		"all at once": {
			map[string]string{
				"SMTP_URL": "smtp://ann:hunter2@m?tls=none", "MAIL_FROM": "a@b.org, c@d.org", "MAIL_OPERATORS": "ops@example.org,nobody", "MAIL_URL": "h.example.org",
				"MAIL_TEMPLATES": folder, "MAIL_DIGEST": "often", "MAIL_DOMAINS": "example.org,ann@example.org", "MAIL_TOKEN_DAILY": "-1",
			},
			[]string{"HOLDFAST_SMTP_URL", "HOLDFAST_MAIL_FROM", "HOLDFAST_MAIL_OPERATORS", "HOLDFAST_MAIL_URL", "HOLDFAST_MAIL_TEMPLATES", "report.txt", "HOLDFAST_MAIL_DIGEST", "HOLDFAST_MAIL_DOMAINS", "HOLDFAST_MAIL_TOKEN_DAILY"},
		},
	} {
		vars := map[string]string{}
		for n, value := range tt.vars {
			vars["HOLDFAST_"+n] = value
		}
		set(t, vars)
		_, err := config.Load(t.Context(), config.Default())
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		for _, want := range tt.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no word of %s: %v", name, want, err)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a password is repeated: %v", name, err)
		}
	}
}

// TestStorages_Layout: an address may have a layout with its own commas, alone and among several
// storages.
func TestStorages_Layout(t *testing.T) {
	for text, want := range map[string][]config.Storage{
		"file:///a?layout=0006,delimiter=/": {{Name: "storage", Address: "file:///a?layout=0006,delimiter=/"}},
		"file:///a?layout=0004,tupleSize=2,numberOfTuples=4,second=s3://b/c?region=r&layout=0006,delimiter=:&class=STANDARD third=file:///d": {
			{Name: "storage", Address: "file:///a?layout=0004,tupleSize=2,numberOfTuples=4"},
			{Name: "second", Address: "s3://b/c?region=r&layout=0006,delimiter=:&class=STANDARD"},
			{Name: "third", Address: "file:///d"},
		},
	} {
		got, err := config.Config{StorageURL: text}.Storages()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (%v):\n%s", text, err, diff)
		}
	}
	if all, err := (config.Config{StorageURL: "file:///a,delimiter=/"}).Storages(); err == nil {
		t.Errorf("a parameter without a layout was taken: %v", all)
	}
}

// An unreadable file of authorities is reported at the start.
func TestLoad_Authorities(t *testing.T) {
	for _, name := range []string{"HOLDFAST_CA_FILE", "HOLDFAST_REDIS_CA_FILE"} {
		set(t, map[string]string{name: filepath.Join(t.TempDir(), "none.pem")})
		if _, err := config.Load(t.Context(), config.Default()); err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}
