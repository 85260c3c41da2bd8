# SPDX-License-Identifier: Apache-2.0
# libfabric's interface on simulated nodes: ranks that meet over it, and the suite of adapters/libfabric/test.
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBFABRIC REQUIRED IMPORTED_TARGET libfabric)
if(TARGET mca_mtl_velo AND VELO_OPENMPI_VERSION VERSION_LESS 5)
    # Open MPI's mpirun starts it; it calls no MPI.
    add_executable(velo-sim-fabric fabric.c)
    target_link_libraries(velo-sim-fabric PRIVATE velo PkgConfig::LIBFABRIC)
    add_test(NAME sim.libfabric_repeats_itself_to_the_message
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/fabric.py
                     ${PROJECT_BINARY_DIR}/bin/velo $<TARGET_FILE:velo-sim-fabric>)
    set_tests_properties(sim.libfabric_repeats_itself_to_the_message PROPERTIES LABELS full TIMEOUT 300)
endif()

# The suite, each port on a node of its own. By day a few of each kind; the others take as long, or send
# more. Left out is what a node's host port does not have: descriptors to wait for, and a thread that
# makes progress; and what sends ten megabytes and more.
set(fabric_by_day
    a_buffer_is_released_once_when_too_little_room_is_left
    a_claimed_message_is_for_its_claimer_alone
    a_counter_is_set_read_and_added_to
    a_directed_tagged_receive_takes_messages_of_its_source_alone
    a_key_that_is_registered_anew_reaches_the_new_memory
    a_lock_made_of_compare_and_swap_excludes
    a_message_to_oneself_arrives
    a_peek_tells_of_a_message_and_leaves_it
    a_receive_of_a_message_whose_sender_was_killed_fails
    a_send_that_waits_for_a_peer_that_is_killed_fails
    a_sleeper_in_sread_is_woken_by_each_message
    a_thread_that_waits_lets_others_post
    a_wait_ends_after_its_time
    a_wait_for_a_count_is_woken_by_each_message
    an_access_without_the_right_is_refused
    an_address_taken_again_leads_to_the_memory_of_the_new_endpoint
    an_atomic_with_a_wrong_key_or_outside_is_refused
    an_exit_without_closing_leaves_no_file
    an_operation_outside_of_the_memory_is_refused
    atomic_fetches_and_comparisons_take_all_forms_of_calls
    buffers_follow_each_other_and_each_is_released_once
    every_valid_atomic_comparison_is_as_computed
    memory_is_written_by_inject_write
    memory_is_written_by_inject_writedata_and_its_owner_told
    messages_of_every_size_arrive_by_injectdata
    operations_on_memory_of_a_peer_that_was_killed_fail
    plain_receives_and_buffers_are_matched_in_their_order
    sends_that_wait_for_delivery_and_others_are_all_told_once
    tagged_messages_of_every_size_arrive_by_tinject
    writes_and_reads_are_counted)
set(fabric_left_out
    a_queue_with_completions_is_not_to_be_waited_for
    a_small_queue_of_sends_refuses_and_all_arrives
    a_sleeper_in_poll_is_woken_by_each_message
    a_wait_object_is_a_descriptor_if_one_is_asked_for
    four_processes_exchange_messages_of_all_sizes
    processes_write_and_read_each_others_memory
    with_automatic_progress_a_receiver_makes_no_calls
    with_automatic_progress_a_sender_of_much_makes_no_calls
    with_automatic_progress_the_owner_of_memory_makes_no_calls)
set(fabric_environment VELO_FI_TEST_LONGEST=65537 FI_PROVIDER_PATH=$<TARGET_FILE_DIR:velo-fi-device> VELO_FI_TEST_COMPLETE=1
                       HFI_NO_BACKTRACE=1 IPATH_NO_BACKTRACE=1)
set(fabric_sources addresses atomics completions counters flow lifetime memory messages multi processes)
foreach(source ${fabric_sources})
    file(STRINGS ${PROJECT_SOURCE_DIR}/adapters/libfabric/test/${source}.c names REGEX "^TEST\\(")
    list(TRANSFORM names REPLACE "^TEST\\(([a-z0-9_]+)\\).*" "\\1")
    list(REMOVE_ITEM names ${fabric_left_out})
    foreach(name ${names})
        set(label nightly)
        set(timeout_s 3600)
        if(name IN_LIST fabric_by_day)
            set(label full)
            set(timeout_s 300)
        endif()
        add_test(NAME sim-fi.${name} COMMAND ${plain} $<TARGET_FILE:velo-fi-test> ${name} nodes=4 spread=4)
        set_tests_properties(
            sim-fi.${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout_s} ENVIRONMENT
                                      "${fabric_environment}" SKIP_RETURN_CODE 77)
    endforeach()
endforeach()
foreach(test "descriptors a_wait_object_is_a_descriptor_if_one_is_asked_for"
             "threads with_automatic_progress_a_receiver_makes_no_calls")
    separate_arguments(test)
    list(POP_FRONT test what name)
    velo_add_test_that_prints(
        sim-fi.${what}_are_refused STATUS 1
        PATTERNS "there are no descriptors and no thread that makes progress"
        COMMAND ${plain} $<TARGET_FILE:velo-fi-test> ${name} nodes=4 spread=4)
    set_tests_properties(
        sim-fi.${what}_are_refused PROPERTIES LABELS full TIMEOUT 300 ENVIRONMENT
                                              "${fabric_environment};FI_LOG_LEVEL=warn")
endforeach()
