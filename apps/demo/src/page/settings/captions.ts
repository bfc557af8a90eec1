import { StoredChoice, useChoice } from './stored-choice.ts'

/** Captions repeat the current words near the input. The conversation contains them too. */
const captions = new StoredChoice({ key: 'captions', values: ['off', 'on'], fallback: 'off' })

export function useCaptions() {
  return useChoice(captions)
}
