import type { EmulatorCore } from '../emulator-core.ts'
import { modelNotFound } from '../wire/google-error.ts'
import type { Setup } from '../wire/live-messages.ts'
import type { CloseInfo, Connection } from './connection.ts'
import { CloseCode } from './connection.ts'
import type { LiveSettings } from './live-options.ts'
import { isNonBlockingByDefault, isThirdGeneration } from './live-options.ts'
import type { LiveState, ResumableState } from './live-state.ts'
import { createState, readConfig } from './live-state.ts'

export interface SetupContext {
  readonly core: EmulatorCore
  readonly settings: LiveSettings
  readonly handles: ResumptionHandles
  /** `v1alpha` or `v1beta`. */
  readonly version: string
}

type SetupResult =
  | { readonly type: 'opened'; readonly state: LiveState; readonly lineage: Lineage }
  | ({ readonly type: 'rejected' } & CloseInfo)

/** Creates the state of a session from its setup, or returns why the setup is rejected. */
export function openSetup(setup: Setup, context: SetupContext): SetupResult {
  const { core, settings, handles, version } = context
  const config = readConfig(setup, settings)
  if (!core.hasModel(config.model)) {
    const { message } = modelNotFound(config.model, version, 'bidiGenerateContent')
    return reject(CloseCode.NotFound, message)
  }
  const modalities = setup.generationConfig?.responseModalities ?? ['AUDIO']
  if (!isSupported(modalities, config.model, settings)) {
    const list = modalities.join(', ')
    return reject(
      CloseCode.InvalidArgument,
      `The requested combination of response modalities (${list}) is not supported by the model. models/${config.model}`,
    )
  }
  const unsupported = findUnsupported(setup, config.model)
  if (unsupported !== undefined)
    return reject(
      CloseCode.InvalidArgument,
      `${unsupported} is not supported by the model. models/${config.model}`,
    )
  const handle = setup.sessionResumption?.handle
  const resumed = handle ? handles.find(handle) : undefined
  if (handle && !resumed) {
    return reject(settings.refusedHandleCode, 'BidiGenerateContent session not found')
  }
  const lineage = resumed?.lineage ?? { connection: undefined }
  if (lineage.connection?.isOpen === true) {
    return reject(CloseCode.Internal, 'The session is in use by another connection.')
  }
  return { type: 'opened', state: createState(setup, config, resumed?.state), lineage }
}

/** Returns the field of a setup that `gemini-3.8-live` rejects. */
function findUnsupported(
  { generationConfig, proactivity }: Setup,
  model: string,
): string | undefined {
  if (!isNonBlockingByDefault(model)) return undefined
  const { thinkingConfig, enableAffectiveDialog } = generationConfig ?? {}
  if (thinkingConfig?.['thinkingLevel'] !== undefined) return 'thinking_level'
  if (enableAffectiveDialog) return 'enable_affective_dialog'
  return proactivity?.['proactiveAudio'] === false ? 'proactive_audio: false' : undefined
}

function isSupported(
  modalities: readonly string[],
  model: string,
  settings: LiveSettings,
): boolean {
  const [modality, ...others] = modalities
  if (others.length > 0) return false
  if (modality === undefined || modality === 'AUDIO') return true
  const isAudioOnly = model.includes('native-audio') || isThirdGeneration(model)
  return modality === 'TEXT' && (settings.modalities === 'any' || !isAudioOnly)
}

function reject(code: number, reason: string): SetupResult {
  return { type: 'rejected', code, reason }
}

/** A session and all sessions that were resumed from it. At most one connection uses them at a time. */
export interface Lineage {
  connection: Pick<Connection, 'isOpen'> | undefined
}

/** A session state, and the lineage that the handle belongs to. */
interface Resumable {
  readonly state: ResumableState
  readonly lineage: Lineage
}

/** The session states that clients can resume. */
interface ResumptionHandles {
  create(resumable: Resumable): string
  /** Returns `undefined` if the handle is unknown or expired. */
  find(handle: string): Resumable | undefined
}

interface HandleOptions {
  readonly lifetimeMs: number
  readonly newId: () => string
  readonly now: () => number
}

// States share their history, so an old one needs little memory. The limit is for emulators that run for weeks.
const MAX_HANDLES = 10_000

export function createResumptionHandles(options: HandleOptions): ResumptionHandles {
  const { lifetimeMs, newId, now } = options
  const entries = new Map<string, Resumable & { readonly expiresAt: number }>()
  return {
    create(resumable) {
      const handle = newId()
      entries.set(handle, { ...resumable, expiresAt: now() + lifetimeMs })
      if (entries.size > MAX_HANDLES) {
        const [oldest] = entries.keys()
        if (oldest !== undefined) entries.delete(oldest)
      }
      return handle
    },
    find(handle) {
      const entry = entries.get(handle)
      if (!entry) return undefined
      if (now() < entry.expiresAt) return entry
      entries.delete(handle)
      return undefined
    },
  }
}
