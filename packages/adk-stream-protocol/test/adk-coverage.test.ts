import type { Event, EventActions } from '@google/adk'
import type { Part } from '@google/genai'
import { expect, test } from 'vitest'

/**
 * Every field that ADK and Gemini can send, with the rule that tells it or the reason why it is not told. A field that a new
 * version adds makes these tables fail to compile.
 */
type Fields<T> = Record<Exclude<keyof T, symbol>, `told: ${string}` | `unreported: ${string}`>

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
  id: 'unreported: ADK gives every partial an id of its own, so it names nothing a client sees',
  invocationId: 'unreported: the turn has its own id',
  timestamp: 'unreported: clients have their own clock',
  turnComplete: 'unreported: the end of the run ends the turn',
  customMetadata: 'unreported: belongs to the agent’s author',
  liveSessionResumptionUpdate: 'unreported: a secret of the connection to Gemini',
  goAway: 'unreported: a matter of the connection to Gemini',
  liveSessionId: 'unreported: a matter of the connection to Gemini',
  interactionId: 'unreported: a matter of the connection to Gemini',
  route: 'unreported: how a workflow goes on inside',
  nodeInfo: 'unreported: how a workflow goes on inside',
  isolationScope: 'unreported: how a workflow goes on inside',
}

const ACTION_FIELDS: Fields<EventActions> = {
  stateDelta: 'told: MP8',
  artifactDelta: 'told: MP8',
  transferToAgent: 'told: MP7',
  requestedToolConfirmations: 'told: AP0, from the call that ADK makes of it',
  requestedAuthConfigs: 'unreported: holds client secrets',
  skipSummarization: 'unreported: addressed to the runner',
  escalate: 'unreported: addressed to the runner',
  agentState: 'unreported: internal to the agent',
  endOfAgent: 'unreported: internal to the agent',
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
  thoughtSignature: 'unreported: opaque, addressed to Gemini; it stays in the session',
  toolCall: 'unreported: Gemini runs it on its side; its answer comes as text and grounding',
  toolResponse: 'unreported: Gemini runs it on its side; its answer comes as text and grounding',
  audioTranscription: 'unreported: ADK gives transcriptions as fields of the event',
  videoMetadata: 'unreported: describes input',
  mediaResolution: 'unreported: describes input',
  mediaProcessing: 'unreported: describes input',
  partMetadata: 'unreported: belongs to the agent’s author',
  speechMetadata: 'unreported: describes input to speech synthesis',
}

test('[MP10] every field of an event, its actions and its parts is told or deliberately unreported', () => {
  const notes = [EVENT_FIELDS, ACTION_FIELDS, PART_FIELDS].flatMap((fields) =>
    Object.values(fields),
  )
  for (const note of notes) expect(note).toMatch(/^(?:told: [A-Z]{2}\d|unreported: \w)/)
})
