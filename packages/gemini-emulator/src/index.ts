export { startEmulator } from './emulator.ts'
export type { Emulator, EmulatorOptions } from './emulator.ts'
export { EmulatorError } from './emulator-error.ts'
export type { EmulatorErrorCode } from './emulator-error.ts'
export type { LiveDesk } from './live/attach-live.ts'
export type { LiveOptions } from './live/live-options.ts'
export type { LiveSession } from './live/live-session.ts'
export type { Act, CallMode, Mind, Prompt } from './mind.ts'
export { firstOf } from './minds/first-of.ts'
export { loadScenario } from './minds/scenario/load-scenario.ts'
export type { StepInput } from './minds/scenario/act-step.ts'
export type { Scenario } from './minds/scenario/scenario.ts'
export { scenarioMind } from './minds/scenario/scenario-mind.ts'
export { scriptMind } from './minds/script/script-mind.ts'
export type { RecordedRequest } from './request-log.ts'
export type {
  Content,
  FunctionCall,
  FunctionDeclaration,
  FunctionResponse,
  Part,
} from './wire/content.ts'
export type { Speech, Synthesize, Transcribe } from './world.ts'
