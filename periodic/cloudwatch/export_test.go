package cloudwatch

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
)

// SendBy makes a publisher send its requests by a client of the test.
func SendBy(p *Publisher, client aws.HTTPClient) {
	p.client = cloudwatch.NewFromConfig(aws.Config{Region: "eu-central-1", HTTPClient: client, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")})
}
