// An MCP server over stdio. It lists the tools of a JSON file, and appends every call as a line to another file.
import { appendFileSync, readFileSync } from 'node:fs'

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [, , tools = '', calls = ''] = process.argv
const mcp = new McpServer({ name: 'files', version: '1.0.0' }, { capabilities: { tools: {} } })

// The methods of `McpServer` itself want schemas of zod.
mcp.server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: /** @type {import("@modelcontextprotocol/sdk/types.js").Tool[]} */ (
    JSON.parse(readFileSync(tools, 'utf8'))
  ),
}))

mcp.server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
  appendFileSync(calls, `${params.name}\n`)
  return { content: [{ type: 'text', text: 'Done.' }] }
})

await mcp.connect(new StdioServerTransport())
