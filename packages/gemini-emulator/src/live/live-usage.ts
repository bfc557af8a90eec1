import type { Part } from '../wire/content.ts'
import type { LiveUsage, ModalityTokens } from '../wire/live-messages.ts'
import { partTokens, promptTokens, textTokens } from '../wire/text.ts'
import { OUTPUT_RATE } from './audio.ts'
import type { LiveState, TurnUsage } from './live-state.ts'

export const NO_USAGE: TurnUsage = { tokens: 0, thoughtTokens: 0, samples: 0 }

/** Counts the tokens of the running turn. */
export function countUsage(state: LiveState): LiveUsage {
  const usage = state.turn.state === 'idle' ? NO_USAGE : state.turn.usage
  const prompt = countPrompt(state)
  const promptTokenCount = prompt.reduce((sum, { tokenCount }) => sum + tokenCount, 0)
  const spoken = audioTokens(usage.samples / OUTPUT_RATE)
  const responseTokenCount = spoken > 0 ? spoken : usage.tokens
  const modality = spoken > 0 ? 'AUDIO' : 'TEXT'
  return {
    promptTokenCount,
    responseTokenCount,
    ...(usage.thoughtTokens > 0 && { thoughtsTokenCount: usage.thoughtTokens }),
    totalTokenCount: promptTokenCount + responseTokenCount + usage.thoughtTokens,
    promptTokensDetails: prompt,
    responseTokensDetails: [{ modality, tokenCount: responseTokenCount }],
  }
}

/** Adds a part or audio samples to the usage of a turn. */
export function addUsage(usage: TurnUsage, part: Part | undefined, samples = 0): TurnUsage {
  const tokens = part ? partTokens(part) : 0
  return {
    tokens: usage.tokens + (part?.thought ? 0 : tokens),
    thoughtTokens: usage.thoughtTokens + (part?.thought ? tokens : 0),
    samples: usage.samples + samples,
  }
}

function countPrompt({ config, history, inputAudioMs }: LiveState): readonly ModalityTokens[] {
  const { details } = promptTokens(history, config.functions)
  const audio = audioTokens(inputAudioMs / 1000)
  return [
    { modality: 'TEXT', tokenCount: textTokens(config.systemInstruction) },
    ...details,
    ...(audio > 0 ? [{ modality: 'AUDIO', tokenCount: audio }] : []),
  ].reduce<ModalityTokens[]>(addTokens, [])
}

/** Keeps one entry for each modality. */
function addTokens(
  sums: ModalityTokens[],
  { modality, tokenCount }: ModalityTokens,
): ModalityTokens[] {
  const others = sums.filter((sum) => sum.modality !== modality)
  const known = sums.find((sum) => sum.modality === modality)?.tokenCount ?? 0
  return [...others, { modality, tokenCount: known + tokenCount }]
}

// Gemini counts 25 tokens for a second of audio.
const audioTokens = (seconds: number) => Math.ceil(seconds * 25)
