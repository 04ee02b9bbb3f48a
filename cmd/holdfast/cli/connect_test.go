package cli_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/config/configtest"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/node"
)

// A token sent to another machine by plain HTTP causes one warning, unless this is allowed.
func TestService_PlainHTTP(t *testing.T) {
	for _, c := range []struct {
		address, meant string
		want           int
	}{
		{"http://holdfast.test:8080", "", 1}, {"http://holdfast.test:8080", "yes", 0}, {"https://holdfast.test", "", 0}, {"http://127.0.0.1:8080", "", 0},
	} {
		clitest.NoEnvironment(t)
		t.Setenv("HOLDFAST_URL", c.address)
		t.Setenv("HOLDFAST_TOKEN", "t")
		t.Setenv("HOLDFAST_PLAIN_HTTP", c.meant)
		var errs strings.Builder
		a := cli.New("dev", nil, nil, &errs)
		for range 2 {
			if _, err := a.Service(); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(errs.String(), "plain HTTP"); got != c.want {
			t.Errorf("%s, meant %q: %d warnings, want %d:\n%s", c.address, c.meant, got, c.want, &errs)
		}
	}
}

// The health of this machine's process is asked without Parameter Store, which may have the settings
// of its certificate.
func TestHealthAddress_NoParameters(t *testing.T) {
	for scheme, start := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		clitest.NoEnvironment(t)
		process := start(http.NotFoundHandler())
		defer process.Close()
		process.Config.ErrorLog = log.New(io.Discard, "", 0)
		store := configtest.ParameterStore(t, [2]string{"/holdfast/TLS_CERT", "/etc/cert.pem"})
		t.Setenv("HOLDFAST_PARAMETERS", "/holdfast")
		t.Setenv("HOLDFAST_LISTEN", process.Listener.Addr().String())
		address, trust, err := cli.New("dev", nil, nil, nil).HealthAddress(t.Context())
		if err != nil || address != process.URL {
			t.Errorf("%s: the address is %s (%v), want %s", scheme, address, err, process.URL)
		}
		if _, err := node.AskHealth(t.Context(), address, trust); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: %v, want that it answers", scheme, err)
		}
		if n := store.Requests(); n > 0 {
			t.Errorf("%s: %d requests to Parameter Store", scheme, n)
		}
	}
}
