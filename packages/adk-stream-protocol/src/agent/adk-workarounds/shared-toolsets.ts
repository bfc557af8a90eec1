import { isAgentTool, isBaseAgent, isLlmAgent, MCPToolset } from '@google/adk'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'

/**
 * Keeps MCP sessions open when a run ends that does not use them. After each run, ADK 2.0.0 closes all toolsets of the agent, and with
 * them every MCP session in use: calls of other chats fail, although their server may have run them. Each call closes its own session,
 * and the listings share one. ADK takes the toolset from the agent, so it cannot be wrapped.
 *
 * Returns a function that closes the toolsets.
 */
export function shareToolsets(roots: Iterable<unknown>): () => Promise<void> {
  const shared = [...new Set(Array.from(roots).flatMap((root) => findToolsets(root)))].filter(
    (toolset) => !Object.hasOwn(toolset, 'close'),
  )
  for (const toolset of shared)
    Reflect.defineProperty(toolset, 'close', { value: leaveOpen, configurable: true })
  const closeSessions = shared.map(listOverOneSession)
  return async () => {
    for (const toolset of shared) Reflect.deleteProperty(toolset, 'close')
    await Promise.all(closeSessions.map((close) => close()))
    await Promise.all(shared.map((toolset) => toolset.close()))
  }
}

function findToolsets(agent: unknown, visited = new Set<unknown>()): MCPToolset[] {
  if (!isBaseAgent(agent) || visited.has(agent)) return []
  visited.add(agent)
  const tools = isLlmAgent(agent) ? agent.tools : []
  return [
    ...tools.flatMap((tool) => (tool instanceof MCPToolset ? [tool] : [])),
    // ADK declares the agent private. Its runner closes its toolsets too.
    ...tools
      .filter(isAgentTool)
      .flatMap((tool) => findToolsets(Reflect.get(tool, 'agent'), visited)),
    ...agent.subAgents.flatMap((subAgent) => findToolsets(subAgent, visited)),
  ]
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
function listOverOneSession(toolset: MCPToolset): () => Promise<void> {
  const manager: unknown = Reflect.get(toolset, 'mcpSessionManager')
  // A subclass may list in another way, and may have private fields.
  if (toolset.getTools !== MCPToolset.prototype.getTools || !isSessionManager(manager))
    return async () => undefined
  const session = new ListingSession(manager)
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

function isSessionManager(value: unknown): value is SessionManager {
  if (typeof value !== 'object' || value === null) return false
  return ['createSession', 'closeSession'].every(
    (name) => typeof Reflect.get(value, name) === 'function',
  )
}

/** A session that opens when it is needed, again if its server is gone, and closes when it is not used for a while. */
class ListingSession {
  readonly #manager: SessionManager
  #client: Client | undefined
  #opening: Promise<Client> | undefined
  #users = 0
  #idle: NodeJS.Timeout | undefined

  constructor(manager: SessionManager) {
    this.#manager = manager
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
    this.#client = await this.#manager.createSession()
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
