package workers_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// tests are those of the package; after them no PostgreSQL is left.
type tests struct{ *testing.M }

func (t tests) Run() int { return postgrestest.Main(t.M) }
