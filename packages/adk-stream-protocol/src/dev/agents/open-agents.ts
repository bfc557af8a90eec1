import path from 'node:path'

import type { Bridge } from '../../server/bridge.ts'
import type { RootAgent } from '../../server/chats/chat-agents.ts'
import { toLiveModelAgent } from '../../server/bridge-modules.ts'
import { createBridge } from '../../server/index.ts'
import { toObservers } from '../../server/settings/observers.ts'
import type { AnyBridgeOptions, BridgeOptions, BridgeSettings } from '../../server/options.ts'
import { toSettings } from '../../server/options.ts'
import type { AgentModules } from '../load/load-agents.ts'
import { LoadError } from '../load/load-error.ts'
import type { FoundAgent } from './read-exports.ts'
import { readExports, readPolicy } from './read-exports.ts'
import type { AgentReport } from './report-agent.ts'
import { describeError, reportAgent, toSentence } from './report-agent.ts'

/** Options of the bridge that an agent alone does not have. Options that a file exports win. */
type BridgeDefaults = Omit<BridgeOptions, 'agent' | 'appName' | 'plugins' | 'live'> & {
  /** The model of live sessions. Undefined: there are none, unless a file enables them. */
  readonly liveModel: string | undefined
}

/** A bridge for agents. */
export interface OpenedAgents {
  readonly bridge: Bridge
  readonly settings: BridgeSettings
  readonly report: AgentReport
  /** The agents with their files. */
  readonly agents: readonly { readonly name: string; readonly file: string }[]
  /** Whether the file has created the bridge itself, with a store of its own. */
  readonly hasOwnBridge: boolean
  /** Why there are no live sessions. */
  readonly noLive: string | undefined
}

interface NamedAgent {
  readonly file: string
  readonly found: FoundAgent
}

/** Creates the bridge of agents. Throws a `LoadError` if a bridge cannot serve them. */
export async function openAgents(
  { agents: modules, policy: policyModule, exportName }: AgentModules,
  createDefaults: () => Promise<BridgeDefaults>,
): Promise<OpenedAgents> {
  const named = modules.map(({ file, exports }) => ({
    file,
    found: readExports(exports, { file, exportName }),
  }))
  const policy = policyModule && readPolicy(policyModule)
  const [first, ...others] = named
  if (!first) throw new LoadError('no-agent', 'There is no agent.')
  if (first.found.kind === 'bridge' && others.length === 0) {
    const { bridge, settings } = first.found
    const report = await reportServable(first, settings)
    return {
      bridge,
      settings,
      report,
      agents: nameRoots(settings, first.file),
      hasOwnBridge: true,
      noLive: undefined,
    }
  }
  const { liveModel, ...defaults } = await createDefaults()
  const own = others.length === 0 ? readOptionsOf(first) : combine(named)
  const options: AnyBridgeOptions = { ...defaults, ...(policy && { approvals: policy }), ...own }
  const { live, noLive } = await chooseLive(options, liveModel)
  const served = { ...options, ...(live && { live }) }
  const settings = toSettings(served, toObservers(served))
  const report = await reportServable(first, settings)
  const bridge = createBridge(served)
  const agents =
    others.length === 0
      ? nameRoots(settings, first.file)
      : named.map((each) => ({ name: nameOf(each, named), file: each.file }))
  return {
    bridge,
    settings,
    report,
    agents,
    hasOwnBridge: false,
    noLive,
  }
}

function nameRoots({ agents }: BridgeSettings, file: string): OpenedAgents['agents'] {
  return Array.from(agents, ([name, root]) => ({ name: name === '' ? root.name : name, file }))
}

function readOptionsOf({ file, found }: NamedAgent): AnyBridgeOptions {
  if (found.kind !== 'bridge') return found.options
  throw new LoadError(
    'unservable',
    `${file}: exports a bridge, which serves its own agents only. Start it alone.`,
  )
}

/** Combines several agents to the options of one bridge. */
function combine(named: readonly NamedAgent[]): AnyBridgeOptions {
  const agents: Record<string, RootAgent> = {}
  for (const each of named) {
    const { file, found } = each
    if (found.kind === 'options' || found.kind === 'bridge')
      throw new LoadError(
        'unservable',
        `${file}: exports ${found.exportName}, which describes a bridge for its own agents only. Start it alone.`,
      )
    if ((found.options.plugins ?? []).length > 0)
      throw new LoadError(
        'unservable',
        `${file}: the app ${found.options.appName} has plugins, which would apply to all agents of the server. Start it alone.`,
      )
    agents[nameOf(each, named)] = found.options.agent
  }
  return { agents }
}

/** The name of an agent, or that of its folder or file if several agents have the same. */
function nameOf(one: NamedAgent, all: readonly NamedAgent[]): string {
  const ownName = ({ found }: NamedAgent): string =>
    found.kind === 'agent' || found.kind === 'app' ? found.options.agent.name : ''
  const name = ownName(one)
  if (all.filter((each) => ownName(each) === name).length === 1) return name
  const { dir, name: stem } = path.parse(one.file)
  return (dir === '' ? stem : dir).replaceAll(/[^\w.-]+/g, '-').replace(/^[^a-z]+/i, '')
}

/** Enables live sessions if all agents can have them. */
async function chooseLive(
  options: AnyBridgeOptions,
  model: string | undefined,
): Promise<Pick<OpenedAgents, 'noLive'> & { readonly live?: BridgeOptions['live'] }> {
  if (options.live || model === undefined) return { noLive: undefined }
  const live = { model, graceMs: 30_000 }
  const withLive = { ...options, live }
  const settings = toSettings(withLive, toObservers(withLive))
  try {
    for (const [name, root] of settings.agents) toLiveModelAgent(name, root, model)
  } catch (error) {
    return { noLive: toSentence(describeError(error)) }
  }
  const { problems } = await reportAgent(settings, { connect: false })
  const without = await reportAgent(toSettings(options, toObservers(options)), { connect: false })
  const added = problems.find((problem) => !without.problems.includes(problem))
  return added === undefined ? { live, noLive: undefined } : { noLive: added }
}

/** Describes the agents. Throws the first problem for which a bridge refuses them. */
async function reportServable(
  { file }: NamedAgent,
  settings: BridgeSettings,
): Promise<AgentReport> {
  const report = await reportAgent(settings, { connect: false })
  const [problem] = report.problems
  if (problem !== undefined) throw new LoadError('unservable', `${file}: ${problem}`)
  return report
}
