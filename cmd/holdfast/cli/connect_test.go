package cli_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
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
