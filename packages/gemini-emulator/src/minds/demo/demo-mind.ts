import type { Mind } from '../../mind.ts'

/** Answers any prompt. */
export const demoMind: Mind = () => [{ type: 'say', text: 'Hello.' }]
