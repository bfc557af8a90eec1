import { observeWrites } from '../agent/adk-workarounds/session-services.ts'
import { checkSessions } from '../agent/tree/check-sessions.ts'
import { Ledger } from '../approvals/ledger.ts'
import { ApprovalPlugin } from '../calls/approval-plugin.ts'
import { CallKinds } from '../calls/call-kind.ts'
import { INPUT_KIND } from '../calls/input-kind.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import { withoutUndefined } from '../shared/collections.ts'
import { retentionOf } from '../store/remove-data.ts'
import type { Store } from '../store/store.ts'
import type { BridgeModules } from './open-modules.ts'
import type { Backend } from './chats/backend.ts'
import { ChatAgents } from './chats/chat-agents.ts'
import { ChatSessions } from './chats/chat-sessions.ts'
import { createEditCheck, createPreviewCheck, createRefresh } from './chats/host/policy-checks.ts'
import { findTool, listClientTools } from './chats/find-tool.ts'
import type { ModelCalls } from './chats/model-calls.ts'
import { AgentHost, type AgentHostOptions } from './chats/host/agent-host.ts'
import { fenceSessions } from './chats/turns/chat-locker.ts'
import type { BridgeSettings } from './options.ts'

interface BackendParts extends Pick<
  BridgeModules,
  'openKinds' | 'openPrior' | 'openSubstitutes' | 'waitingCalls'
> {
  readonly modelCalls: ModelCalls | undefined
  /** Called when an event of a chat was stored or removed. */
  readonly onWritten: (chat: ChatRef) => void
  /** Called for a decided call whose result could not be stored at the end of its run. */
  readonly onLeft: AgentHostOptions['onLeft']
}

/** Creates the ledger, the agents and their host on an open store. */
export async function openBackend(
  settings: BridgeSettings,
  store: Store,
  {
    openKinds,
    openPrior,
    openSubstitutes,
    waitingCalls,
    modelCalls,
    onWritten,
    onLeft,
  }: BackendParts,
): Promise<Backend> {
  const { appName, agents: roots, approvals: policy, chooseAgent, limits, onError } = settings
  const { chats } = store
  if (settings.retention) retentionOf(store)
  const ledger = new Ledger({
    store: store.approvals,
    appName,
    leaseMs: limits.leaseMs,
    maxBlockedMs: limits.maxBlockedMs,
    ...withoutUndefined({ policyVersion: settings.policyVersion }),
    quota: { perChat: limits.maxPendingPerChat, perPrincipal: limits.maxPendingPerPrincipal },
    onError,
  })
  const kinds = new CallKinds([INPUT_KIND, ...(await openKinds(store))])
  const prior = openPrior(store)
  const agents: ChatAgents = new ChatAgents({
    names: [...roots.keys()],
    chooseAgent,
    chats,
    chatExists: (chat) => sessions.exists(chat),
    onError,
  })
  const sessions = openSessions(settings, { store, ledger, agents, onWritten })
  const host = openHost(settings, { ledger, kinds, prior, agents, sessions, modelCalls, onLeft })
  const clientTools = listClientTools(roots.values())
  const mayEdit = createEditCheck(policy, onError)
  return {
    agents,
    host,
    sessions,
    ledger,
    kinds,
    prior,
    substitutes: openSubstitutes(store),
    waitingCalls,
    chats,
    isPageTool: (toolName) => clientTools.has(toolName),
    findTool: async (chat, toolName) => findTool(roots.get(await agents.of(chat)), toolName),
    // BT1702: the page runs the call that the model made.
    mayEdit: async (approval, edit) =>
      !clientTools.has(approval.toolName) && mayEdit(approval, edit),
    refresh: createRefresh(policy, kinds, onError),
    checkPreview: createPreviewCheck(policy, onError),
    appName,
    store,
  }
}

type SessionParts = Pick<Backend, 'store' | 'ledger' | 'agents'> & Pick<BackendParts, 'onWritten'>

function openSessions(
  { appName, agents: roots, approvals: policy, sessionService, onError }: BridgeSettings,
  { store, ledger, agents, onWritten }: SessionParts,
): ChatSessions {
  const service = sessionService ? fenceSessions(sessionService, ledger) : store.sessions
  const checked = checkSessions(service, { appName, policy, onError })
  return new ChatSessions({
    service: observeWrites(checked, { appName, onWritten }),
    chats: store.chats,
    authorOf: async (chat) => {
      const root = roots.get(await agents.of(chat))
      if (!root) throw new ProtocolError('unknown-agent')
      return root.name
    },
  })
}

function openHost(
  settings: BridgeSettings,
  parts: Pick<Backend, 'ledger' | 'kinds' | 'prior' | 'agents' | 'sessions'> &
    Pick<BackendParts, 'modelCalls' | 'onLeft'>,
): AgentHost {
  const { appName, services, runConfig, onError } = settings
  const { ledger, kinds, prior, agents, sessions, modelCalls, onLeft } = parts
  const gateOptions = {
    ledger,
    policy: settings.approvals,
    deadlineMs: settings.approvalDeadlineMs,
    exposeErrors: settings.exposeToolErrors,
    kinds,
    prior,
    onError,
  }
  const hosted = Array.from(settings.agents, ([name, agent]) => {
    const gate = new ApprovalPlugin({ ...gateOptions, root: agent })
    return [name, { agent, gate }] as const
  })
  return new AgentHost({
    ...services,
    plugins: [...(services.plugins ?? []), ...(modelCalls ? [modelCalls] : [])],
    agents: new Map(hosted),
    agentOf: (chat) => agents.of(chat),
    appName,
    sessions,
    ledger,
    kinds,
    onError,
    onLeft,
    ...(runConfig && { runConfig }),
  })
}
