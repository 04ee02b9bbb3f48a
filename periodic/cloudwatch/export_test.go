package cloudwatch

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/holdfast/holdfast/internal/awstest"
)

// SendBy makes a publisher send its requests by a client of the test.
func SendBy(p *Publisher, client aws.HTTPClient) {
	p.client = cloudwatch.NewFromConfig(awstest.Config(client))
}
