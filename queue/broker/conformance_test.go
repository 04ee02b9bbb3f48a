package broker_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, opts broker.Options) *broker.Broker {
	t.Helper()
	b, err := broker.New(opts)
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close broker: %v", err)
		}
	})
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatalf("listen: %v", err)
	}
	return b
}

func TestConformance(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(t *testing.T) string { return open(t, broker.Options{}).Addr() })
}

func TestConformance_NSQD(t *testing.T) {
	addr := os.Getenv("HOLDFAST_TEST_NSQD_ADDR")
	if addr == "" {
		t.Skip("HOLDFAST_TEST_NSQD_ADDR names no nsqd")
	}
	queuetest.Run(t, func(*testing.T) string { return addr })
}
