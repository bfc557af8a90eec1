// An MCP server over stdio, as a tool of another vendor would be. Every call is a line in the file that it is given.
import { appendFileSync } from 'node:fs'

import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [, , calls = ''] = process.argv
// `McpServer` wants schemas of zod; the point here is a JSON Schema as other servers have it.
// oxlint-disable-next-line typescript/no-deprecated
const server = new Server({ name: 'bank', version: '1.0.0' }, { capabilities: { tools: {} } })

const AMOUNT = { type: 'number', exclusiveMinimum: 0, maximum: 1000 }

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [
    {
      name: 'transfer',
      description: 'Transfers money.',
      inputSchema: {
        type: 'object',
        properties: {
          amount: AMOUNT,
          to: { type: 'string', minLength: 1 },
          memo: { type: ['string', 'null'] },
        },
        required: ['amount', 'to'],
      },
    },
    {
      name: 'transfer_by_rule',
      description: 'Transfers money by a rule that only the server can check.',
      inputSchema: {
        type: 'object',
        properties: { amount: AMOUNT, to: { type: 'string' } },
        if: { properties: { amount: { minimum: 100 } } },
        // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
        then: { required: ['to'] },
      },
    },
  ],
}))

server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
  appendFileSync(calls, `${JSON.stringify(params)}\n`)
  return { content: [{ type: 'text', text: 'Transferred.' }] }
})

await server.connect(new StdioServerTransport())
