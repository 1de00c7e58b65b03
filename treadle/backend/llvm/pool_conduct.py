"""LLVM IR of the thread pool, first part: the conductor, who walks through a program's records.

The protocol and the names after a dollar sign are explained in `pool_ir`.
"""

CONDUCTOR = """
; Tasks low .. high - 1 of a phase, counted through its records.
define internal void @run_tasks(ptr %first, ptr %slots, i64 %low, i64 %high) {
entry:
  br label %record
record:
  %here = phi ptr [ %first, %entry ], [ %after, %next ]
  %from = phi i64 [ %low, %entry ], [ %from.next, %next ]
  %to = phi i64 [ %high, %entry ], [ %to.next, %next ]
  %tasks.at = getelementptr i8, ptr %here, i64 $RECORD_TASKS
  %tasks = load i64, ptr %tasks.at
  %end = call i64 @llvm.smin.i64(i64 %to, i64 %tasks)
  %any = icmp slt i64 %from, %end
  br i1 %any, label %kernel, label %next
kernel:
  %function.at = getelementptr i8, ptr %here, i64 $RECORD_FUNCTION
  %function = load ptr, ptr %function.at
  %map.at = getelementptr i8, ptr %here, i64 $RECORD_MAP
  %map = load ptr, ptr %map.at
  br label %call
call:
  %task = phi i64 [ %from, %kernel ], [ %task.next, %call ]
  call void %function(ptr %slots, ptr %map, i64 %task)
  %task.next = add i64 %task, 1
  %again = icmp slt i64 %task.next, %end
  br i1 %again, label %call, label %next
next:
  %after = getelementptr i8, ptr %here, i64 64
  %from.left = sub i64 %from, %tasks
  %from.next = call i64 @llvm.smax.i64(i64 %from.left, i64 0)
  %to.next = sub i64 %to, %tasks
  %more = icmp sgt i64 %to.next, 0
  br i1 %more, label %record, label %done
done:
  ret void
}

; Conduct from the cursor until a phase is published (MORE), the program ends (FINISHED), or the
; caller's slice is over (PAUSED is set, and MORE).
define internal i32 @conduct(ptr %state, i1 %is_caller) {
entry:
  %cursor.at = getelementptr i64, ptr %state, i64 $CURSOR
  %held.at = getelementptr i64, ptr %state, i64 $HELD
  %abort.at = getelementptr i64, ptr %state, i64 $ABORT
  %deadline.at = getelementptr i64, ptr %state, i64 $DEADLINE
  %paused.at = getelementptr i64, ptr %state, i64 $PAUSED
  %ticket.at = getelementptr i64, ptr %state, i64 $TICKET
  %sleepers.at = getelementptr i64, ptr %state, i64 $SLEEPERS
  %records.at = getelementptr i64, ptr %state, i64 $RECORDS
  %records = load ptr, ptr %records.at
  %count.at = getelementptr i64, ptr %state, i64 $COUNT
  %count = load i64, ptr %count.at
  %slots.at = getelementptr i64, ptr %state, i64 $SLOTS
  %slots = load ptr, ptr %slots.at
  br label %record.next

record.next:
  %cursor = load i64, ptr %cursor.at
  %over = icmp sge i64 %cursor, %count
  br i1 %over, label %complete, label %look
look:
  %record = getelementptr [64 x i8], ptr %records, i64 %cursor
  %kind = load i32, ptr %record
  %following = add i64 %cursor, 1
  %held = load atomic i64, ptr %held.at monotonic, align 8
  %free = icmp eq i64 %held, 0
  br i1 %free, label %look.abort, label %act
look.abort:
  %abort = load atomic i64, ptr %abort.at monotonic, align 8
  %aborted = icmp ne i64 %abort, 0
  br i1 %aborted, label %finish, label %look.flag
look.flag:
  %flag.at = load ptr, ptr %slots
  %flag = load atomic i64, ptr %flag.at monotonic, align 8
  %failed = icmp ne i64 %flag, 0
  br i1 %failed, label %finish, label %look.clock
look.clock:
  br i1 %is_caller, label %clock, label %act
clock:
  %now = call i64 @treadle_pool_ticks()
  %deadline = load i64, ptr %deadline.at
  %late = icmp uge i64 %now, %deadline
  br i1 %late, label %pause, label %act
pause:
  store i64 1, ptr %paused.at
  ret i32 $MORE

act:
  switch i32 %kind, label %skip [ i32 $KERNEL, label %phase
                                  i32 $LOOP_BEGIN, label %loop.begin
                                  i32 $LOOP_END, label %loop.end
                                  i32 $HOLD, label %hold ]
skip:
  store i64 %following, ptr %cursor.at
  br label %record.next
hold:
  store atomic i64 1, ptr %held.at monotonic, align 8
  br label %skip
loop.begin:
  br label %trip
loop.end:                                    ; the LOOP_BEGIN knows everything else of its loop
  %begin.at = getelementptr i8, ptr %record, i64 $RECORD_TARGET
  %begin = load i64, ptr %begin.at
  %begin.record = getelementptr [64 x i8], ptr %records, i64 %begin
  %step.old.at = getelementptr i8, ptr %begin.record, i64 $RECORD_COUNTER
  %step.old.slot = load i64, ptr %step.old.at
  %step.old.cell = getelementptr i64, ptr %slots, i64 %step.old.slot
  %step.old = load i64, ptr %step.old.cell
  %step.following = add i64 %step.old, 1
  br label %trip
trip:                                        ; does the loop go on with this step?
  %top = phi i64 [ %cursor, %loop.begin ], [ %begin, %loop.end ]
  %step = phi i64 [ 0, %loop.begin ], [ %step.following, %loop.end ]
  %loop = getelementptr [64 x i8], ptr %records, i64 %top
  %counter.at = getelementptr i8, ptr %loop, i64 $RECORD_COUNTER
  %counter = load i64, ptr %counter.at
  %step.at = getelementptr i64, ptr %slots, i64 %counter
  store i64 %step, ptr %step.at
  %trips.at = getelementptr i8, ptr %loop, i64 $RECORD_TRIPS
  %trips = load i64, ptr %trips.at
  %left = icmp slt i64 %step, %trips
  br i1 %left, label %trip.test, label %loop.leave
trip.test:
  %test.at = getelementptr i8, ptr %loop, i64 $RECORD_TEST
  %test = load i64, ptr %test.at
  %counted = icmp eq i64 %test, 0
  br i1 %counted, label %loop.body, label %trip.byte
trip.byte:                                   ; a kernel of an earlier phase has written it
  %byte.slot = getelementptr i64, ptr %slots, i64 %test
  %byte.at = load ptr, ptr %byte.slot
  %byte = load i8, ptr %byte.at
  %byte.64 = zext i8 %byte to i64
  %wanted.at = getelementptr i8, ptr %loop, i64 $RECORD_WANTED
  %wanted.byte = load i64, ptr %wanted.at
  %holds = icmp eq i64 %byte.64, %wanted.byte
  br i1 %holds, label %loop.body, label %loop.leave
loop.body:
  %body = add i64 %top, 1
  store i64 %body, ptr %cursor.at
  br label %record.next
loop.leave:                                  ; go on behind the LOOP_END
  %end.at = getelementptr i8, ptr %loop, i64 $RECORD_TARGET
  %end = load i64, ptr %end.at
  %behind = add i64 %end, 1
  store i64 %behind, ptr %cursor.at
  br label %record.next

phase:                                       ; how many tasks, and how many chunks are worth it
  %length.at = getelementptr i8, ptr %record, i64 $RECORD_LENGTH
  %length.word = load i32, ptr %length.at
  %length = sext i32 %length.word to i64
  br label %measure
measure:
  %index = phi i64 [ 0, %phase ], [ %index.next, %measure ]
  %total = phi i64 [ 0, %phase ], [ %total.next, %measure ]
  %weight = phi i64 [ 0, %phase ], [ %weight.next, %measure ]
  %part = getelementptr [64 x i8], ptr %record, i64 %index
  %tasks.at = getelementptr i8, ptr %part, i64 $RECORD_TASKS
  %tasks = load i64, ptr %tasks.at
  %hint.at = getelementptr i8, ptr %part, i64 $RECORD_CHUNKS
  %hint.word = load i32, ptr %hint.at
  %hint = sext i32 %hint.word to i64
  %no_hint = icmp eq i64 %hint, 0
  %wanted = select i1 %no_hint, i64 %tasks, i64 %hint
  %wanted.less = call i64 @llvm.smin.i64(i64 %wanted, i64 %tasks)
  %wanted.eighths = mul i64 %wanted.less, $SERIAL_PER_CHUNK
  %serial = icmp eq i64 %hint, 1
  %serial.eighths = call i64 @llvm.smin.i64(i64 %tasks, i64 1)
  %eighths = select i1 %serial, i64 %serial.eighths, i64 %wanted.eighths
  %total.next = add i64 %total, %tasks
  %weight.next = add i64 %weight, %eighths
  %index.next = add i64 %index, 1
  %measured = icmp sge i64 %index.next, %length
  br i1 %measured, label %cut, label %measure
cut:
  %weight.up = add i64 %weight.next, $ROUND_UP
  %worth = sdiv i64 %weight.up, $SERIAL_PER_CHUNK
  %worth.32 = call i64 @llvm.smin.i64(i64 %worth, i64 32)
  %chunks = call i64 @llvm.smin.i64(i64 %worth.32, i64 %total.next)
  %next = add i64 %cursor, %index.next
  store i64 %next, ptr %cursor.at
  %alone = icmp sle i64 %chunks, 1
  br i1 %alone, label %serial.check, label %publish
serial.check:
  %some = icmp sgt i64 %total.next, 0
  br i1 %some, label %serial.run, label %record.next
serial.run:
  call void @run_tasks(ptr %record, ptr %slots, i64 0, i64 %total.next)
  br label %record.next

publish:
  %phase.record.at = getelementptr i64, ptr %state, i64 $PHASE_RECORD
  store ptr %record, ptr %phase.record.at
  %phase.tasks.at = getelementptr i64, ptr %state, i64 $PHASE_TASKS
  store i64 %total.next, ptr %phase.tasks.at
  %phase.chunks.at = getelementptr i64, ptr %state, i64 $PHASE_CHUNKS
  store atomic i64 %chunks, ptr %phase.chunks.at monotonic, align 8
  %remaining.at = getelementptr i64, ptr %state, i64 $REMAINING
  store atomic i64 %chunks, ptr %remaining.at monotonic, align 8
  %ticket.old = load atomic i64, ptr %ticket.at monotonic, align 8
  %serial.old = and i64 %ticket.old, 9223372032559808512         ; bits 62..32
  %serial.new = add i64 %serial.old, 4294967296
  %serial.part = and i64 %serial.new, 9223372032559808512
  %bits = shl i64 1, %chunks
  %absent = sub i64 4294967296, %bits                            ; bits chunks..31
  %ticket.new = or i64 %serial.part, %absent
  store atomic i64 %ticket.new, ptr %ticket.at seq_cst, align 8
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %useful = sub i64 %bits, 1
  %wanted.sleepers = and i64 %sleepers, %useful
  %nobody = icmp eq i64 %wanted.sleepers, 0
  br i1 %nobody, label %published, label %publish.wake
publish.wake:
  call void @wake(ptr %state, i64 %wanted.sleepers)
  br label %published
published:
  ret i32 $MORE

complete:
  %program.at = getelementptr i64, ptr %state, i64 $PROGRAM
  %program = load ptr, ptr %program.at
  %completed.at = getelementptr i64, ptr %program, i64 $PROGRAM_COMPLETED
  store i64 1, ptr %completed.at
  br label %finish
finish:
  br i1 %is_caller, label %finished, label %finish.tell
finish.tell:                                 ; the caller waits at the ticket; one store tells it
  %ticket.last = load atomic i64, ptr %ticket.at monotonic, align 8
  %ticket.bump = add i64 %ticket.last, 4294967296
  %ticket.end = or i64 %ticket.bump, -9223372032559808513        ; bit 63, and no chunk is left
  store atomic i64 %ticket.end, ptr %ticket.at seq_cst, align 8
  %asleep = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %caller.bit = and i64 %asleep, 1
  %caller.asleep = icmp ne i64 %caller.bit, 0
  br i1 %caller.asleep, label %finish.wake, label %finished
finish.wake:
  call void @wake(ptr %state, i64 1)
  br label %finished
finished:
  ret i32 $FINISHED
}
"""
