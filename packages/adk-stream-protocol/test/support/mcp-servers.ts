import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'

import type { MCPConnectionParams } from '@google/adk'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { ElicitRequestFormParams, Tool } from '@modelcontextprotocol/sdk/types.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

import { listen } from '../../../../test/support/listen.ts'
import { bundleProgram } from '../../../../test/support/bundle-program.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'

/** A tool without arguments, as a server lists it. With `_meta.elicit`, it asks for this, or for several things one after the other, and returns the answers as text. */
export type ListedTool = Pick<Tool, 'name' | 'title' | 'annotations' | '_meta'>

/** A real MCP server whose tools a test can change while it runs. */
export interface McpFixture extends AsyncDisposable {
  readonly connection: MCPConnectionParams
  /** The names of the tools that were called, without a prefix. */
  calls(): string[]
  list(tools: readonly ListedTool[]): void
}

type ServeTools = (tools: readonly ListedTool[]) => Promise<McpFixture>

export const MCP_TRANSPORTS: Readonly<Record<string, ServeTools>> = {
  stdio: serveStdio,
  'streamable HTTP': serveHttp,
}

/** An MCP server in processes of its own: one for listings, and one for each call. */
async function serveStdio(tools: readonly ListedTool[]): Promise<McpFixture> {
  const program = await bundleProgram(new URL('mcp-file-server.mjs', import.meta.url))
  const folder = await temporaryDirectory()
  const [listed, called] = [folder.file('tools.json'), folder.file('calls.txt')]
  const list: McpFixture['list'] = (next) =>
    writeFileSync(listed, JSON.stringify(next.map(withSchema)))
  list(tools)
  return {
    connection: {
      type: 'StdioConnectionParams',
      serverParams: { command: process.execPath, args: [program, listed, called] },
    },
    calls: () => (existsSync(called) ? readFileSync(called, 'utf8').trim().split('\n') : []),
    list,
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}

/** An MCP server on a port of this process. `run` is called by each tool, before it returns, and `onList` when its tools are listed. */
export async function serveHttp(
  tools: readonly ListedTool[],
  run: (mcp: McpServer) => unknown = () => undefined,
  onList: (mcp: McpServer) => unknown = () => undefined,
): Promise<McpFixture> {
  const calls: string[] = []
  let listed = tools
  const open = (): McpServer => {
    const mcp = new McpServer({ name: 'files', version: '1.0.0' }, { capabilities: { tools: {} } })
    // The methods of `McpServer` itself want schemas of zod.
    mcp.server.setRequestHandler(ListToolsRequestSchema, async () => {
      await onList(mcp)
      return { tools: listed.map(withSchema) }
    })
    mcp.server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
      calls.push(params.name)
      await run(mcp)
      const { _meta } = listed.find(({ name }) => name === params.name) ?? {}
      if (_meta?.['elicit']) {
        const timeout = Number(_meta['timeout'] ?? 60_000)
        const content: { type: 'text'; text: string }[] = []
        for (const asked of [_meta['elicit']].flat() as ElicitRequestFormParams[]) {
          const options = { relatedRequestId: requestId, timeout }
          const result = await mcp.server.elicitInput(asked, options)
          content.push({ type: 'text', text: JSON.stringify(result) })
        }
        return { content }
      }
      return { content: [{ type: 'text', text: 'Done.' }] }
    })
    return mcp
  }
  const { url, close } = await serveMcp(open)
  return {
    connection: { type: 'StreamableHTTPConnectionParams', url },
    calls: () => [...calls],
    list: (next) => {
      listed = next
    },
    [Symbol.asyncDispose]: close,
  }
}

/** Serves the streamable HTTP transport with a server for each session. */
async function serveMcp(
  open: () => McpServer,
): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const http = createServer((request, response) => {
    void (async () => {
      const known = sessions.get(String(request.headers['mcp-session-id']))
      if (known) return known.handleRequest(request, response)
      const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => {
          sessions.set(id, transport)
        },
      })
      await open().connect(transport)
      await transport.handleRequest(request, response)
    })()
  })
  const port = await listen(http)
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: async () => {
      for (const transport of sessions.values()) await transport.close()
      const closed = once(http, 'close')
      http.close()
      http.closeAllConnections()
      await closed
    },
  }
}

function withSchema(tool: ListedTool): Tool {
  return { ...tool, inputSchema: { type: 'object', properties: {} } }
}
