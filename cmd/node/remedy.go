package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	goredis "github.com/redis/go-redis/v9"

	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/storage"
)

// FixDamaged is what to do about a database whose file is damaged.
const FixDamaged = "the file is damaged, or is another one: stop Holdfast, keep the file, and restore a backup (\"The database was lost\" in docs/operating.md)"

// Plain returns an error of a service or place in the words that matter to an operator. The errors of
// drivers repeat themselves, name internal operations and carry long request ids.
func Plain(err error) string {
	var database *pgconn.PgError
	var connecting *pgconn.ConnectError
	var dial *net.OpError
	var answered interface{ HTTPStatusCode() int } // of S3
	switch {
	case errors.As(err, &database):
		return fmt.Sprintf("the database refuses: %s (SQLSTATE %s)", database.Message, database.Code)
	case errors.As(err, &connecting) && errors.As(err, &dial), errors.As(err, &answered) && answered.HTTPStatusCode() == 0 && errors.As(err, &dial):
		return dialed(dial)
	case errors.As(err, &connecting) && isUnknownHost(err):
		return "the database's host has no address: " + connecting.Config.Host
	case errors.As(err, &answered) && answered.HTTPStatusCode() >= http.StatusMultipleChoices:
		text := fmt.Sprintf("S3 answers %d %s", answered.HTTPStatusCode(), http.StatusText(answered.HTTPStatusCode()))
		var request interface{ ServiceRequestID() string }
		if errors.As(err, &request) && request.ServiceRequestID() != "" {
			text += " (request " + request.ServiceRequestID() + ")"
		}
		return text
	case isFull(err):
		return "no space is left"
	case isAny(err, syscall.EROFS):
		return "it is mounted read-only"
	case errors.As(err, &dial) && dial.Op == "dial":
		return strings.Replace(err.Error(), dial.Error(), dialed(dial), 1)
	}
	return err.Error()
}

// dialed says of a connection that was not made what people look at: where to, and why not.
func dialed(err *net.OpError) string {
	cause := err.Err
	var call *os.SyscallError
	if errors.As(cause, &call) {
		cause = call.Err
	}
	var name *net.DNSError
	switch {
	case errors.As(cause, &name) && name.IsNotFound:
		return "the host " + name.Name + " has no address"
	case err.Addr == nil:
		return "could not connect: " + cause.Error()
	}
	return "could not connect to " + err.Addr.String() + ": " + cause.Error()
}

// Remedy returns what an operator does about an error of a service or place, whose address is in the
// setting. It returns otherwise if the error does not tell, and "" if the error has its own advice.
func Remedy(err error, setting, otherwise string) string {
	var database interface{ SQLState() string }
	var answered interface{ HTTPStatusCode() int } // of S3
	status := 0
	if errors.As(err, &answered) {
		status = answered.HTTPStatusCode()
	}
	switch {
	case errors.As(err, new(*sqldb.SchemaError)):
		return ""
	case errors.As(err, &database) && strings.HasPrefix(database.SQLState(), "28"):
		return "correct the user and the password in " + setting
	case errors.As(err, &database) && database.SQLState() == "3D000":
		return "make the database (createdb), or correct its name in " + setting
	case errors.As(err, &database) && database.SQLState() == "42501":
		return "make the user of " + setting + " the owner of the database"
	case sqldb.IsDamaged(err):
		return FixDamaged
	case isRedisRefusal(err):
		return "correct the user and the password in " + setting
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "correct this process's access keys (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or its role), or let them list, read, write and delete in the bucket of " + setting
	case status == http.StatusMovedPermanently:
		return "correct region= in " + setting
	case isFull(err):
		return "make room on the volume, or enlarge it"
	case isAny(err, syscall.EROFS):
		return "mount the volume writable; after a fault of the disk, check it first"
	case isAny(err, fs.ErrPermission):
		return fmt.Sprintf("let this process's user (uid %d) read and write there", os.Getuid())
	case isAny(err, fs.ErrNotExist):
		return "mount its volume, make the folder, or correct " + setting
	case isAny(err, syscall.ECONNREFUSED):
		return "start it, or correct the host and port in " + setting
	case isUnknownHost(err):
		return "correct the host in " + setting + ", or the names in DNS"
	case isAny(err, context.DeadlineExceeded, os.ErrDeadlineExceeded):
		return "see whether it runs, and whether a firewall lets this machine reach it; or correct " + setting
	}
	return otherwise
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func isFull(err error) bool { return isAny(err, storage.ErrNoSpace, syscall.ENOSPC, syscall.EDQUOT) }

func isUnknownHost(err error) bool {
	var name *net.DNSError
	return errors.As(err, &name) && name.IsNotFound
}

// isRedisRefusal reports whether Redis refuses the user or the password.
func isRedisRefusal(err error) bool {
	return goredis.IsAuthError(err) || goredis.IsPermissionError(err)
}
