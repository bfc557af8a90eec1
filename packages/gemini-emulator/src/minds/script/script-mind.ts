import type { Mind } from '../../mind.ts'

export const scriptMind: Mind = () => undefined
