import type { Event, EventActions } from '@google/adk'
import type { Part } from '@google/genai'
import { expect, test } from 'vitest'

/**
 * Every field that ADK and Gemini can send, with the rule that tells it or the reason why it is not told. A field that a new
 * version adds makes these tables fail to compile.
 */
type Fields<T> = Record<Exclude<keyof T, symbol>, `told: ${string}` | `untold: ${string}`>

const EVENT_FIELDS: Fields<Event> = {
  content: 'told: MP1–MP5',
  groundingMetadata: 'told: MP6',
  citationMetadata: 'told: MP6',
  partial: 'told: MP1',
  errorCode: 'told: ER2',
  errorMessage: 'told: ER2',
  usageMetadata: 'told: CH7',
  finishReason: 'told: CH8',
  inputTranscription: 'told: MP9',
  outputTranscription: 'told: MP9',
  modelVersion: 'told: CH2',
  author: 'told: MP7',
  branch: 'told: MP7',
  actions: 'told: MP8',
  longRunningToolIds: 'told: CH8',
  output: 'told: MP8',
  interrupted: 'told: TU7',
  id: 'untold: ADK gives every partial an id of its own, so it names nothing a client sees',
  invocationId: 'untold: the turn has its own id',
  timestamp: 'untold: clients have their own clock',
  turnComplete: 'untold: the end of the run ends the turn',
  customMetadata: 'untold: belongs to the agent’s author',
  liveSessionResumptionUpdate: 'untold: a secret of the connection to Gemini',
  goAway: 'untold: a matter of the connection to Gemini',
  liveSessionId: 'untold: a matter of the connection to Gemini',
  interactionId: 'untold: a matter of the connection to Gemini',
  route: 'untold: how a workflow goes on inside',
  nodeInfo: 'untold: how a workflow goes on inside',
  isolationScope: 'untold: how a workflow goes on inside',
}

const ACTION_FIELDS: Fields<EventActions> = {
  stateDelta: 'told: MP8',
  artifactDelta: 'told: MP8',
  transferToAgent: 'told: MP7',
  requestedToolConfirmations: 'told: AP0, from the call that ADK makes of it',
  requestedAuthConfigs: 'untold: holds client secrets',
  skipSummarization: 'untold: addressed to the runner',
  escalate: 'untold: addressed to the runner',
  agentState: 'untold: internal to the agent',
  endOfAgent: 'untold: internal to the agent',
}

const PART_FIELDS: Fields<Part> = {
  text: 'told: MP1',
  thought: 'told: MP2',
  functionCall: 'told: MP3',
  functionResponse: 'told: MP3',
  inlineData: 'told: MP4',
  fileData: 'told: MP4',
  executableCode: 'told: MP5',
  codeExecutionResult: 'told: MP5',
  thoughtSignature: 'untold: opaque, addressed to Gemini; it stays in the session',
  toolCall: 'untold: Gemini runs it on its side; its answer comes as text and grounding',
  toolResponse: 'untold: Gemini runs it on its side; its answer comes as text and grounding',
  audioTranscription: 'untold: ADK gives transcriptions as fields of the event',
  videoMetadata: 'untold: describes input',
  mediaResolution: 'untold: describes input',
  mediaProcessing: 'untold: describes input',
  partMetadata: 'untold: belongs to the agent’s author',
  speechMetadata: 'untold: describes input to speech synthesis',
}

test('[MP10] every field of an event, its actions and its parts is told or deliberately untold', () => {
  const notes = [EVENT_FIELDS, ACTION_FIELDS, PART_FIELDS].flatMap((fields) =>
    Object.values(fields),
  )
  for (const note of notes) expect(note).toMatch(/^(?:told: [A-Z]{2}\d|untold: \w)/)
})
