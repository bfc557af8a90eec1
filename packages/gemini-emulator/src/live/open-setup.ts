import { modelNotFound } from '../wire/google-error.ts'
import type { Setup } from '../wire/live-messages.ts'
import type { World } from '../world.ts'
import { CloseCode } from './close-code.ts'
import type { Handles } from './handles.ts'
import { isThirdGeneration, type LiveSettings } from './live-options.ts'
import { createState, readConfig, type LiveState } from './live-state.ts'
import type { Closing } from './connection.ts'

export interface SetupContext {
  readonly world: World
  readonly settings: LiveSettings
  readonly handles: Handles
  /** `v1alpha` or `v1beta`. */
  readonly version: string
}

export type Opening =
  | { readonly type: 'opened'; readonly state: LiveState }
  | ({ readonly type: 'refused' } & Closing)

/** Opens a session as the setup asks, or says why not. */
export function openSetup(setup: Setup, context: SetupContext): Opening {
  const { world, settings, handles, version } = context
  const config = readConfig(setup, settings)
  if (!world.hasModel(config.model)) {
    const { message } = modelNotFound(config.model, version, 'bidiGenerateContent')
    return refuse(CloseCode.NotFound, message)
  }
  const modalities = setup.generationConfig?.responseModalities ?? ['AUDIO']
  if (!canAnswerIn(modalities, config.model, settings)) {
    const list = modalities.join(', ')
    return refuse(
      CloseCode.InvalidArgument,
      `The requested combination of response modalities (${list}) is not supported by the model. models/${config.model}`,
    )
  }
  const handle = setup.sessionResumption?.handle
  const memory = handle ? handles.redeem(handle) : undefined
  if (handle && !memory) {
    return refuse(CloseCode.NotFound, 'BidiGenerateContent session not found')
  }
  return { type: 'opened', state: createState(setup, config, memory) }
}

function canAnswerIn(
  modalities: readonly string[],
  model: string,
  settings: LiveSettings,
): boolean {
  const [modality, ...others] = modalities
  if (others.length > 0) return false
  if (modality === undefined || modality === 'AUDIO') return true
  const speaksOnly = model.includes('native-audio') || isThirdGeneration(model)
  return modality === 'TEXT' && (settings.modalities === 'any' || !speaksOnly)
}

function refuse(code: number, reason: string): Opening {
  return { type: 'refused', code, reason }
}
