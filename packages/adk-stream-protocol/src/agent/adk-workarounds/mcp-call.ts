import type { BaseTool, MCPConnectionParams } from '@google/adk'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/sdk/types.js'

import { isRecord } from '../../protocol/guards.ts'

/** Asks a person what an MCP server wants to know. The signal aborts when the server does not wait any more, or the call has ended. */
type Elicit = (
  params: ElicitRequest['params'],
  signal: AbortSignal,
) => Promise<ElicitResult | ElicitFault>

/** Why nobody was asked. The server receives it as an error. */
export interface ElicitFault {
  readonly fault: string
}

interface McpCall {
  readonly args: Record<string, unknown>
  readonly signal: AbortSignal | undefined
  readonly elicit: Elicit
}

/** What ADK's `MCPTool` keeps private: the name of the tool on its server, and how to connect to the server. */
interface McpTool {
  readonly name: string
  readonly connection: MCPConnectionParams
  /** The sessions that `MCPToolset.close()` closes. */
  readonly sessions: Set<unknown>
}

/** Returns what is needed to call the tool of an MCP server. Returns undefined for any other tool. */
export function readMcpTool(tool: BaseTool): McpTool | undefined {
  const name: unknown = Reflect.get(tool, 'originalName')
  const manager: unknown = Reflect.get(tool, 'mcpSessionManager')
  if (typeof name !== 'string' || typeof manager !== 'object' || manager === null) return undefined
  const connection: unknown = Reflect.get(manager, 'connectionParams')
  const sessions: unknown = Reflect.get(manager, 'activeSessions')
  return isConnection(connection) && sessions instanceof Set
    ? { name, connection, sessions }
    : undefined
}

function isConnection(value: unknown): value is MCPConnectionParams {
  return (
    isRecord(value) &&
    (value['type'] === 'StdioConnectionParams' ||
      value['type'] === 'StreamableHTTPConnectionParams')
  )
}

/**
 * Calls a tool of an MCP server as ADK 2.0.0 does, with a client that declares elicitation. ADK's client declares no capabilities and
 * cannot be replaced. The client serves this call only, so each request of the server belongs to the call.
 */
export async function callMcpTool(
  { name, connection, sessions }: McpTool,
  { args, signal, elicit }: McpCall,
): Promise<unknown> {
  const clock = new CallClock()
  const ended = new AbortController()
  const questions = new Set<Promise<unknown>>()
  const client = await connect(connection, (params, cancelled) => {
    const question = clock.pauseFor(() =>
      elicit(params, AbortSignal.any([cancelled, ended.signal])),
    )
    questions.add(question)
    return question
  })
  sessions.add(client)
  try {
    return await client.callTool({ name, arguments: args }, undefined, {
      signal: AbortSignal.any([clock.signal, ...(signal ? [signal] : [])]),
      // The clock of this call replaces the timeout of the SDK, which would run while a person thinks.
      timeout: MAX_TIMEOUT_MS,
    })
  } finally {
    ended.abort()
    clock.stop()
    sessions.delete(client)
    await client.close()
    // A question that is still open ends before its call does.
    await Promise.allSettled(questions)
  }
}

async function connect(connection: MCPConnectionParams, elicit: Elicit): Promise<Client> {
  const library = await loadLibrary()
  const { ElicitRequestSchema, ErrorCode, McpError } = library
  const client = new library.Client(
    // The name that ADK's own client has.
    { name: 'MCPClient', version: '1.0.0' },
    { capabilities: { elicitation: { form: {}, url: {} } } },
  )
  client.setRequestHandler(ElicitRequestSchema, async ({ params }, { signal }) => {
    const result = await elicit(params, signal)
    if (isFault(result)) throw new McpError(ErrorCode.InvalidParams, result.fault)
    return result
  })
  await client.connect(openTransport(connection, library))
  return client
}

function isFault(result: ElicitResult | ElicitFault): result is ElicitFault {
  return typeof result['fault'] === 'string'
}

/** An optional peer of ADK, which an agent with an `MCPToolset` has. The `try` tells bundlers that it may be missing. */
async function loadLibrary() {
  try {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
    const { StreamableHTTPClientTransport } =
      await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
    const types = await import('@modelcontextprotocol/sdk/types.js')
    return { ...types, Client, StdioClientTransport, StreamableHTTPClientTransport }
  } catch (cause) {
    throw new Error(
      'MCP tools need the package @modelcontextprotocol/sdk: npm install @modelcontextprotocol/sdk',
      { cause },
    )
  }
}

function openTransport(
  connection: MCPConnectionParams,
  library: Awaited<ReturnType<typeof loadLibrary>>,
): Transport {
  if (connection.type === 'StdioConnectionParams')
    return new library.StdioClientTransport(connection.serverParams)
  // ADK 2.0.0 still reads `header`.
  // oxlint-disable-next-line typescript/no-deprecated
  const { url, header, transportOptions = {} } = connection
  const headers = toHeaders(header)
  const options =
    transportOptions.requestInit || !headers
      ? transportOptions
      : { ...transportOptions, requestInit: { headers } }
  return new library.StreamableHTTPClientTransport(new URL(url), options)
}

function toHeaders(
  header: Record<string, unknown> | undefined,
): Record<string, string> | undefined {
  return (
    header &&
    Object.fromEntries(Object.entries(header).map(([name, value]) => [name, String(value)]))
  )
}

/** The default of the MCP SDK for a request, which ADK uses. */
const CALL_MS = 60_000
/** The longest delay of a timer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** Limits the time of a call, without the time in which a person is asked. */
export class CallClock {
  readonly #controller = new AbortController()
  #leftMs = CALL_MS
  #startedAt = 0
  #timer: NodeJS.Timeout | undefined
  #asked = 0

  constructor() {
    this.#start()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  async pauseFor<Result>(ask: () => Promise<Result>): Promise<Result> {
    if (this.#asked === 0) this.#pause()
    this.#asked += 1
    try {
      return await ask()
    } finally {
      this.#asked -= 1
      if (this.#asked === 0 && !this.signal.aborted) this.#start()
    }
  }

  stop(): void {
    clearTimeout(this.#timer)
    // A question that ends later does not start the clock again.
    this.#asked += 1
  }

  #start(): void {
    this.#startedAt = performance.now()
    const expire = (): void =>
      this.#controller.abort(new Error(`The MCP server did not respond within ${CALL_MS} ms.`))
    this.#timer = setTimeout(expire, this.#leftMs)
  }

  #pause(): void {
    clearTimeout(this.#timer)
    this.#leftMs -= performance.now() - this.#startedAt
  }
}
