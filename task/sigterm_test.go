package task_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore/sqlstoretest"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
)

// patientProgram is the argument that makes the test binary a program with a function that waits
// until it is told to stop.
const patientProgram = "serve-patiently"

func servePatiently() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	r := remote.Open(os.Getenv("HOLDFAST_URL"), os.Getenv("HOLDFAST_TOKEN"))
	defer r.Close()
	var m task.Mux
	task.Handle(&m, "work", func(ctx context.Context, run *task.Run, _ none) (none, error) {
		fmt.Println("begun", run.ID)
		<-ctx.Done()
		fmt.Println("told to stop", run.ID)
		return none{}, context.Cause(ctx)
	})
	return task.Serve(ctx, r, &m, task.Options{})
}

// TestC18_SIGTERM sends SIGTERM to a program while its function runs. The function sees it, the program
// ends well, and its task is pending, with nothing counted, until another program takes it.
func TestC18_SIGTERM(t *testing.T) {
	for name, database := range map[string]func(testing.TB) string{"sqlite": sqlstoretest.SQLite, "postgres": sqlstoretest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, url: database(t), http: true}
			f.open()
			f.must(f.store.Announce(f.Context(), []registry.Function{{Name: "work"}}))
			it, err := f.people.AddTask(f.Context(), registry.NewTask{Function: "work", Args: []byte("{}")})
			f.must(err)
			self, err := os.Executable()
			f.must(err)
			c := f.child([]string{self, patientProgram})
			c.await("begun " + it.ID)
			f.must(c.cmd.Process.Signal(syscall.SIGTERM))
			f.must(c.wait())
			c.await("told to stop " + it.ID)
			if it := f.item(it.ID); it.Status != registry.Pending || it.Tries != 0 {
				f.Errorf("it is %s after %d failures", it.Status, it.Tries)
			}
			var m task.Mux
			task.Handle(&m, "work", func(context.Context, *task.Run, none) (none, error) { return none{}, nil })
			f.serve(&m)
			if it := f.settled(it.ID); it.Status != registry.Completed || len(f.attempts(it.ID)) != 2 {
				f.Errorf("it is %s after %d attempts", it.Status, len(f.attempts(it.ID)))
			}
		})
	}
}
