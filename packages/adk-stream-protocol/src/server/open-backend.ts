import { checkSessions } from '../agent/adk-workarounds/checked-sessions.ts'
import { Ledger } from '../approvals/ledger.ts'
import { ApprovalPlugin } from '../calls/approval-plugin.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { retentionOf } from '../store/remove-data.ts'
import { AgentHost } from './chats/turns/agent-host.ts'
import type { Backend, LazyStore } from './chats/backend.ts'
import type { RootAgent } from './chats/chat-agents.ts'
import { ChatAgents } from './chats/chat-agents.ts'
import { hasAgents, readAgents } from './options.ts'
import { fenceSessions } from './chats/turns/chat-locker.ts'
import { ChatSessions } from './chats/chat-sessions.ts'
import { findTool, listBrowserTools } from './chats/find-tool.ts'
import type { ModelCalls } from './chats/model-calls.ts'
import {
  createEditCheck,
  createPreviewCheck,
  createRefresh,
} from './chats/decisions/policy-checks.ts'
import type { BridgeLimits } from './limits.ts'
import type { AnyBridgeOptions } from './options.ts'
import { toObservers } from './observers.ts'
import { SignIns } from './sign-in/sign-ins.ts'

/** Opens the store, and creates the ledger, the agents and their host. */
export async function openBackend(
  options: AnyBridgeOptions,
  limits: BridgeLimits,
  store: LazyStore,
  modelCalls?: ModelCalls,
): Promise<Backend> {
  const { appName = 'adk-stream-protocol', sessionService, approvals = {} } = options
  const { plugins, artifactService, memoryService, credentialService, runConfig } = options
  const { onError } = toObservers(options)
  const opened = await store.open()
  if (options.retention) retentionOf(opened)
  const ledger = new Ledger({
    store: opened.approvals,
    appName,
    leaseMs: limits.leaseMs,
    maxBlockedMs: limits.maxBlockedMs,
    quota: { perChat: limits.maxPendingPerChat, perPrincipal: limits.maxPendingPerPrincipal },
    onError,
  })
  const deadlineMs = options.approvalDeadlineMs
  const exposeErrors = options.exposeToolErrors ?? false
  const roots = readAgents(options)
  const signIns = options.signIn && (await SignIns.open(options.signIn, appName, opened))
  const common = {
    ledger,
    policy: approvals,
    deadlineMs,
    exposeErrors,
    elicits: options.elicitation ?? false,
    credentials: signIns,
    onError,
  }
  const toGate = (root: RootAgent): ApprovalPlugin => new ApprovalPlugin({ ...common, root })
  const agents = new ChatAgents({
    names: [...roots.keys()],
    chooseAgent: hasAgents(options) ? options.chooseAgent : undefined,
    chats: opened.chats,
    onError,
  })
  const sessions = new ChatSessions({
    service: checkSessions(
      sessionService ? fenceSessions(sessionService, ledger) : opened.sessions,
      { appName, policy: approvals, onError },
    ),
    chats: opened.chats,
    authorOf: async (chat) => {
      const root = roots.get(await agents.of(chat))
      if (!root) throw new ProtocolError('unknown-agent')
      return root.name
    },
  })
  const host = new AgentHost({
    agents: new Map([...roots].map(([name, agent]) => [name, { agent, gate: toGate(agent) }])),
    agentOf: (chat) => agents.of(chat),
    appName,
    sessions,
    ledger,
    ...(runConfig && { runConfig }),
    plugins: [...(plugins ?? []), ...(modelCalls ? [modelCalls] : [])],
    ...(artifactService && { artifactService }),
    ...(memoryService && { memoryService }),
    ...(credentialService && { credentialService }),
  })
  return {
    agents,
    host,
    sessions,
    ledger,
    browserCalls: opened.browserCalls,
    chats: opened.chats,
    browserTools: listBrowserTools(roots.values()),
    findTool: async (chat, toolName) => findTool(roots.get(await agents.of(chat)), toolName),
    mayEdit: createEditCheck(approvals, onError),
    refresh: createRefresh(approvals, onError),
    checkPreview: createPreviewCheck(approvals, onError),
    signIns,
    appName,
    store: opened,
  }
}
