// An MCP server over stdio. It lists the tools of a JSON file, and appends every call as a line to another file.
import { appendFileSync, readFileSync } from 'node:fs'

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [, , tools = '', calls = ''] = process.argv
const mcp = new McpServer({ name: 'files', version: '1.0.0' }, { capabilities: { tools: {} } })

// The methods of `McpServer` itself want schemas of zod.
mcp.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: listTools() }))

function listTools() {
  return /** @type {import("@modelcontextprotocol/sdk/types.js").Tool[]} */ (
    JSON.parse(readFileSync(tools, 'utf8'))
  )
}

mcp.server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
  appendFileSync(calls, `${params.name}\n`)
  const { _meta } = listTools().find(({ name }) => name === params.name) ?? {}
  if (_meta?.['elicit']) {
    const asked =
      /** @type {import("@modelcontextprotocol/sdk/types.js").ElicitRequestFormParams} */ (
        _meta['elicit']
      )
    const result = await mcp.server.elicitInput(asked, { relatedRequestId: requestId })
    return { content: [{ type: 'text', text: JSON.stringify(result) }] }
  }
  return { content: [{ type: 'text', text: 'Done.' }] }
})

await mcp.connect(new StdioServerTransport())
