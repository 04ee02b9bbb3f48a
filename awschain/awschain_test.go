package awschain_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/aws/smithy-go/logging"

	"github.com/holdfast/holdfast/awschain"
)

// TestLoad_Log: what AWS's library says is a line of the process's log, or nothing.
func TestLoad_Log(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	var out bytes.Buffer
	c, err := awschain.Load(t.Context(), slog.New(slog.NewJSONHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	logging.WithContext(t.Context(), c.Logger).Logf(logging.Warn, "no %s", "region")
	c.Logger.Logf(logging.Debug, "which is not shown")
	var line struct{ Level, Msg, Text string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Level != "WARN" || line.Text != "no region" || line.Msg == "" {
		t.Errorf("%v: %s", err, out.String())
	}
	if c, err = awschain.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, silent := c.Logger.(logging.Nop); !silent {
		t.Errorf("without a log it says things to %T", c.Logger)
	}
}
