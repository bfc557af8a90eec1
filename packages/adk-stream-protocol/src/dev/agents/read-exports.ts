import { isApp, isRunnableRoot } from '@google/adk'

import type { ApprovalPolicy } from '../../approvals/policy.ts'
import { isObject, isRecord } from '../../protocol/guards.ts'
import type { Bridge } from '../../server/bridge.ts'
import { findSettings } from '../../server/bridge-settings.ts'
import { BRIDGE_MODULES } from '../../server/bridge-modules.ts'
import { checkOptions } from '../../server/check-options.ts'
import { toObservers } from '../../server/settings/observers.ts'
import type { AnyBridgeOptions, BridgeOptions, BridgeSettings } from '../../server/options.ts'
import { toSettings } from '../../server/options.ts'
import { suggestName } from '../../shared/suggest-name.ts'
import type { LoadedFile } from '../load/load-agents.ts'
import { LoadError } from '../load/load-error.ts'

/** The agent of a file: a bridge, or the options of one. */
export type FoundAgent = {
  /** The name of the export. */
  readonly exportName: string
  readonly settings: BridgeSettings
} & (
  | { readonly kind: 'bridge'; readonly bridge: Bridge }
  | { readonly kind: 'options'; readonly options: AnyBridgeOptions }
  | { readonly kind: 'agent' | 'app'; readonly options: BridgeOptions }
)

/** The order in which exports are looked for. The first two have policies and sign-in of their own; the others are ADK's. */
const NAMES = ['bridge', 'options', 'app', 'rootApp', 'rootAgent', 'default']

/**
 * Finds the agent in the exports of a file: a bridge, options of one, an `App`, an agent or a workflow. `exportName` names it if the
 * file has several. Throws a `LoadError`.
 */
export function readExports(
  exports: Readonly<Record<string, unknown>>,
  source: ExportSource,
): FoundAgent {
  try {
    return findExport(exports, source)
  } catch (error) {
    // An option of a bridge is invalid.
    if (error instanceof TypeError && error.message.startsWith('createBridge'))
      throw new LoadError('no-agent', `${source.file}: ${error.message}`, { cause: error })
    throw error
  }
}

interface ExportSource {
  /** As messages name it. */
  readonly file: string
  readonly exportName?: string | undefined
}

function findExport(
  exports: Readonly<Record<string, unknown>>,
  { file, exportName }: ExportSource,
): FoundAgent {
  const all = withCommonJs(exports)
  if (exportName !== undefined) {
    const named = readExport(all, exportName)
    if (named) return named
    const known = Object.keys(all).filter((name) => readExport(all, name))
    const problem = Object.hasOwn(all, exportName) ? 'is not an agent' : 'does not exist'
    throw new LoadError(
      'no-agent',
      `${file}: the export ${exportName} ${problem}.${suggestName(exportName, known)}`,
    )
  }
  for (const name of NAMES) {
    const found = readExport(all, name)
    if (found) return found
  }
  return readOnly(all, file)
}

/** Returns the only agent that a file exports, under any name. */
function readOnly(all: Readonly<Record<string, unknown>>, file: string): FoundAgent {
  const names = Object.keys(all).filter((name) => readExport(all, name))
  const distinct = names.filter(
    (name, index) => names.findIndex((each) => all[each] === all[name]) === index,
  )
  const [first, ...others] = distinct
  if (first !== undefined && others.length > 0)
    throw new LoadError(
      'several-agents',
      `${file}: exports ${distinct.length} agents: ${distinct.join(', ')}. Choose one with --export ${first}, or name one of them rootAgent.`,
    )
  const found = first === undefined ? undefined : readExport(all, first)
  if (found) return found
  const exported = Object.keys(all).join(', ')
  throw new LoadError(
    'no-agent',
    `${file}: exports no agent${exported === '' ? '' : `, only ${exported}`}. Export it as rootAgent: export const rootAgent = new LlmAgent({ … })`,
  )
}

/** A CommonJS module exports one object, of which Node may not find the names. */
function withCommonJs(exports: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const inner = exports['default']
  return isRecord(inner) && !isApp(inner) && !isRunnableRoot(inner)
    ? { ...inner, ...exports }
    : { ...exports }
}

function readExport(
  exports: Readonly<Record<string, unknown>>,
  exportName: string,
): FoundAgent | undefined {
  const value = Object.hasOwn(exports, exportName) ? exports[exportName] : undefined
  const settings = findSettings(value)
  // `findSettings` knows only bridges.
  if (settings) return { exportName, kind: 'bridge', settings, bridge: value as Bridge }
  // ADK recognises its objects by symbols, also those of another copy, which the checks of the bridge then name.
  if (isApp(value)) {
    const { rootAgent: agent, plugins, name: appName } = value
    return { exportName, kind: 'app', ...readOptions({ agent, plugins, appName }) }
  }
  if (isRunnableRoot(value)) return { exportName, kind: 'agent', ...readOptions({ agent: value }) }
  if (exportName === 'options' && isObject(value))
    return { exportName, kind: 'options', ...readOptions(value) }
  return undefined
}

function readOptions<Options extends Readonly<Record<string, unknown>>>(options: Options) {
  checkOptions(options, BRIDGE_MODULES.options)
  // `checkOptions` has checked them.
  const checked = options as Options & BridgeOptions
  return { options: checked, settings: toSettings(checked, toObservers(checked)) }
}

/** Returns the policy that a file exports. Throws a `LoadError` if there is none. */
export function readPolicy({ file, exports }: LoadedFile): ApprovalPolicy {
  const found = exports['approvals'] ?? exports['default']
  // `createBridge` checks the verdicts.
  if (isObject(found) || typeof found === 'function') return found as ApprovalPolicy
  throw new LoadError(
    'no-agent',
    `${file}: exports no policy. Export it as approvals: export const approvals = { pay: true }`,
  )
}
