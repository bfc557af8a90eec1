import type { Part } from '../wire/content.ts'
import type { LiveUsage, ModalityTokens } from '../wire/live-messages.ts'
import { partTokens, promptTokens, textTokens } from '../wire/tokens.ts'
import type { LiveState, Spent } from './live-state.ts'
import { OUTPUT_RATE } from './plan-turn.ts'

export const NOTHING_SPENT: Spent = { tokens: 0, thoughtTokens: 0, samples: 0 }

/** Counts the tokens of the turn under way. */
export function countUsage(state: LiveState): LiveUsage {
  const spent = state.turn.state === 'idle' ? NOTHING_SPENT : state.turn.spent
  const prompt = countPrompt(state)
  const promptTokenCount = prompt.reduce((sum, { tokenCount }) => sum + tokenCount, 0)
  const spoken = audioTokens(spent.samples / OUTPUT_RATE)
  const responseTokenCount = spoken > 0 ? spoken : spent.tokens
  const modality = spoken > 0 ? 'AUDIO' : 'TEXT'
  return {
    promptTokenCount,
    responseTokenCount,
    ...(spent.thoughtTokens > 0 && { thoughtsTokenCount: spent.thoughtTokens }),
    totalTokenCount: promptTokenCount + responseTokenCount + spent.thoughtTokens,
    promptTokensDetails: prompt,
    responseTokensDetails: [{ modality, tokenCount: responseTokenCount }],
  }
}

/** Adds a part, or a stretch of sound, to what a turn has given. */
export function spend(spent: Spent, said: Part | undefined, samples = 0): Spent {
  const tokens = said ? partTokens(said) : 0
  return {
    tokens: spent.tokens + (said?.thought ? 0 : tokens),
    thoughtTokens: spent.thoughtTokens + (said?.thought ? tokens : 0),
    samples: spent.samples + samples,
  }
}

function countPrompt({ config, history, heardMs }: LiveState): readonly ModalityTokens[] {
  const { details } = promptTokens(history, config.functions)
  const heard = audioTokens(heardMs / 1000)
  return [
    { modality: 'TEXT', tokenCount: textTokens(config.systemInstruction) },
    ...details,
    ...(heard > 0 ? [{ modality: 'AUDIO', tokenCount: heard }] : []),
  ].reduce<ModalityTokens[]>(addUp, [])
}

/** One entry for each modality. */
function addUp(sums: ModalityTokens[], { modality, tokenCount }: ModalityTokens): ModalityTokens[] {
  const others = sums.filter((sum) => sum.modality !== modality)
  const known = sums.find((sum) => sum.modality === modality)?.tokenCount ?? 0
  return [...others, { modality, tokenCount: known + tokenCount }]
}

// Gemini counts 25 tokens for a second of audio.
const audioTokens = (seconds: number) => Math.ceil(seconds * 25)
