import type { BaseTool, MCPConnectionParams } from '@google/adk'
import { MCPToolset } from '@google/adk'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/sdk/types.js'

import { isRecord } from '../../protocol/guards.ts'
import { listTools } from '../../agent/tree/list-agents.ts'

/** Asks a person what an MCP server wants to know. The signal aborts when the server no longer waits, or the call has ended. */
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

/** What ADK's `MCPSessionManager` keeps private. */
interface McpServerAccess {
  readonly connection: MCPConnectionParams
  /** The sessions that `MCPToolset.close()` closes. */
  readonly sessions: Set<unknown>
}

/** What ADK's `MCPTool` keeps private: the name of the tool on its server, and how to connect to the server. */
interface McpTool extends McpServerAccess {
  readonly name: string
}

/** Returns what is needed to call the tool of an MCP server. Returns undefined for any other tool. */
export function readMcpTool(tool: BaseTool): McpTool | undefined {
  const name: unknown = Reflect.get(tool, 'originalName')
  const access = readAccess(Reflect.get(tool, 'mcpSessionManager'))
  return typeof name === 'string' && access ? { name, ...access } : undefined
}

function readAccess(manager: unknown): McpServerAccess | undefined {
  if (typeof manager !== 'object' || manager === null) return undefined
  const connection: unknown = Reflect.get(manager, 'connectionParams')
  const sessions: unknown = Reflect.get(manager, 'activeSessions')
  return isConnection(connection) && sessions instanceof Set ? { connection, sessions } : undefined
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

/**
 * Keeps MCP sessions open when a run ends that does not use them. After each run, ADK 2.0.0 closes all toolsets of the agent, and with
 * them every MCP session in use: calls of other chats fail, although their server may have run them. Each call closes its own session,
 * and the listings share one. ADK takes the toolset from the agent, so it cannot be wrapped.
 *
 * With `elicits`, the session of the listings declares elicitation as the calls do: a server may list a tool only for clients that
 * declare what the tool needs.
 *
 * Returns a function that closes the toolsets.
 */
export function shareToolsets(
  roots: Iterable<unknown>,
  { elicits }: { readonly elicits: boolean },
): () => Promise<void> {
  const shared = [...new Set([...roots].flatMap(listTools))]
    .filter((tool) => tool instanceof MCPToolset)
    .filter((toolset) => !Object.hasOwn(toolset, 'close'))
  for (const toolset of shared)
    Reflect.defineProperty(toolset, 'close', { value: leaveOpen, configurable: true })
  const closeSessions = shared.map((toolset) => listOverOneSession(toolset, elicits))
  return async () => {
    for (const toolset of shared) Reflect.deleteProperty(toolset, 'close')
    await Promise.all(closeSessions.map((close) => close()))
    await Promise.all(shared.map((toolset) => toolset.close()))
  }
}

function leaveOpen(): Promise<void> {
  return Promise.resolve()
}

/** The part of ADK's `MCPSessionManager` that `MCPToolset` uses. */
interface SessionManager {
  createSession(): Promise<Client>
  closeSession(client: Client): Promise<void>
}

/** How long an unused session stays open. */
const IDLE_MS = 60_000

/**
 * Lists the tools of a toolset over one session. ADK 2.0.0 lists the tools of an agent before each request to its model, and opens a
 * session each time: it starts the program of a server on stdio, which takes longer than many models. Calls still have sessions of
 * their own, because a server may keep state for a session, and calls belong to different people.
 *
 * Returns a function that undoes this and closes the session.
 */
function listOverOneSession(toolset: MCPToolset, elicits: boolean): () => Promise<void> {
  const manager: unknown = Reflect.get(toolset, 'mcpSessionManager')
  // A subclass may list in another way, and may have private fields.
  if (toolset.getTools !== MCPToolset.prototype.getTools || !isSessionManager(manager))
    return async () => undefined
  const access = elicits ? readAccess(manager) : undefined
  const session = new ListingSession(manager, () =>
    access ? openListing(access) : manager.createSession(),
  )
  const getTools: MCPToolset['getTools'] = async (context) => {
    // The tools keep this manager for their calls. It is an ordinary one when the listing has ended.
    const listing = Object.create(manager) as Partial<SessionManager>
    listing.createSession = () => session.take()
    listing.closeSession = async () => session.release()
    const view = Object.create(toolset, { mcpSessionManager: { value: listing } }) as MCPToolset
    try {
      return await MCPToolset.prototype.getTools.call(view, context)
    } finally {
      delete listing.createSession
      delete listing.closeSession
    }
  }
  Reflect.defineProperty(toolset, 'getTools', { value: getTools, configurable: true })
  return async () => {
    Reflect.deleteProperty(toolset, 'getTools')
    await session.close()
  }
}

/** Opens a session as ADK does, and declares elicitation. A server may ask only while a call runs. */
async function openListing({ connection, sessions }: McpServerAccess): Promise<Client> {
  const client = await connect(connection, async () => ({
    fault: 'Nobody was asked: no call of a tool runs in this session.',
  }))
  sessions.add(client)
  return client
}

function isSessionManager(value: unknown): value is SessionManager {
  if (typeof value !== 'object' || value === null) return false
  return ['createSession', 'closeSession'].every(
    (name) => typeof Reflect.get(value, name) === 'function',
  )
}

/** A session that opens when it is needed, again if its server is gone, and closes when it is not used for a while. */
class ListingSession {
  readonly #manager: SessionManager
  readonly #createSession: SessionManager['createSession']
  #client: Client | undefined
  #opening: Promise<Client> | undefined
  #users = 0
  #idle: NodeJS.Timeout | undefined

  constructor(manager: SessionManager, createSession: SessionManager['createSession']) {
    this.#manager = manager
    this.#createSession = createSession
  }

  async take(): Promise<Client> {
    clearTimeout(this.#idle)
    this.#users += 1
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    try {
      return await this.#opening
    } catch (error) {
      this.release()
      throw error
    }
  }

  release(): void {
    this.#users -= 1
    if (this.#users > 0) return
    this.#idle = setTimeout(() => void this.#drop().catch(() => undefined), IDLE_MS).unref()
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#opening?.catch(() => undefined)
    await this.#drop()
  }

  async #open(): Promise<Client> {
    if (this.#client && (await isAlive(this.#client))) return this.#client
    // A server that is gone does not confirm the end of the session. If it is only slow, another listing may still wait for it.
    if (this.#users === 1) await this.#drop().catch(() => undefined)
    this.#client = await this.#createSession()
    return this.#client
  }

  async #drop(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    if (client) await this.#manager.closeSession(client)
  }
}

async function isAlive(client: Client): Promise<boolean> {
  try {
    await client.ping({ timeout: PING_MS })
    return true
  } catch {
    return false
  }
}

/** After this time without a response, a server counts as gone. */
const PING_MS = 5_000
